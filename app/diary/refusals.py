"""Decides whether a model's answer is the text of a diary or a refusal to write one. Pure.

The text of a diary may begin with "I'm sorry" or "I can't", and a character may be an AI. So an answer is a refusal
only if it begins by declining the task, and nothing follows except the provider's reason or an offer of other help.
Models decline in the language in which they are asked to write, so there are patterns for several languages.
"""

import re

from app.summarising.judging.speech import split_sentences
from app.summarising.prose import is_offer

_AS_AN_AI = r"as an ai(?: \w+){0,2},? "
_OUTPUT = r"(?:content|material|text|response|request|task|entry|diary|story|roleplay|conversation)"

_ENGLISH = re.compile(
    rf"(?:(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|sorry|i apologi[sz]e|unfortunately)[,.]? (?:but )?)?"
    rf"(?:{_AS_AN_AI})?"
    rf"(?:i (?:can['’]?t|can ?not|won['’]?t|will not|must decline to)|i(?:['’]m| am) (?:unable|not able) to)"
    rf" (?:(?:help|assist) (?:you )?with (?:this|that)(?: {_OUTPUT})?"
    rf"|(?:create|generate|produce|provide|compress|complete|fulfil+|write|engage (?:in|with)|continue(?: with)?)"
    rf" (?:(?:this|that|the|a|an|any|such|your) )?(?:\w+ )?{_OUTPUT}"
    rf"|continue (?:with )?(?:this|that)|comply(?: with (?:this|that|the|your) {_OUTPUT})?)"
    rf"(?: about (?:this|that|these|those)(?: \w+)?)?"
    rf"(?:,? (?:that|which|as|because|since|due to)\b[^.!?]*\b(?:guideline|polic|explicit|sexual|harmful|inappropriate)"
    rf"[^.!?]*)?[.!]?"
    rf"|{_AS_AN_AI}i (?:keep|have) no diary[.!]?",
    re.I,
)

# Each of these patterns matches only if the text names the request, the task or the content, at least with a word like
# "this". A text such as "I can't" or "I'm sorry, I can't" does not match.
_CHINESE = (
    r"(?:(?:很|非常|十分)?抱歉|对不起|對不起|不好意思)?[，,。！ ]*(?:但是?)?我?(?:无法|無法|不能)(?:[为為][您你])?"
    r"(?:协助|協助|帮助|幫助|提供|生成|创作|創作|撰写|撰寫|编写|編寫|完成|满足|滿足|处理|處理|回应|回應|继续|繼續)"
    r"[^。！？]{0,8}?(?:[您你该該这這此]|相关|相關|类似|類似)[^。！？]{0,4}(?:请求|請求|内容|內容|要求|任务|任務)[。！]?"
)
_JAPANESE = (
    r"(?:(?:大変)?申し訳(?:ありません|ございません)|すみません|恐れ入ります)(?:が)?[、。 ]*[^。]{0,12}?"
    r"(?:リクエスト|ご要望|ご依頼|内容|コンテンツ|要求|依頼)"
    r"[^。]{0,20}?(?:できません|できかねます|(?:致|いた)しかねます|応じられません)。?"
)
_KOREAN = (
    r"죄송(?:합니다|하지만|합니다만)[,. ]*[^.]{0,20}?(?:요청|내용|콘텐츠|작업)"
    r"[^.]{0,20}?(?:수 없습니다|수 없어요|어렵습니다)\.?"
)
_GERMAN_APOLOGY = r"(?:(?:es )?tut mir (?:sehr )?leid,? (?:aber )?|entschuldigung,? (?:aber )?|leider )?"
_GERMAN = (
    rf"{_GERMAN_APOLOGY}(?:bei dieser (?:anfrage|aufgabe) kann ich|(?:ich kann|kann ich) (?:dir |ihnen )?(?:leider )?"
    r"(?:bei dieser (?:anfrage|aufgabe)|diese (?:anfrage|aufgabe|inhalte)|diesen inhalt|solche inhalte))"
    r" (?:dir |ihnen )?(?:leider )?nicht (?:weiter)?(?:helfen|bearbeiten|erfüllen|erstellen|schreiben)[.!]?"
)
_FRENCH = (
    r"(?:(?:je suis )?(?:vraiment )?désolée?,? (?:mais )?|malheureusement,? )?je ne peux pas \w+(?: \S+){0,3}?"
    r" (?:(?:à |avec )?(?:cette|votre|ta) (?:demande|requête|tâche)|(?:ce (?:type de )?|de tels )contenus?)[.!]?"
)
_SPANISH = (
    r"(?:lo siento,? (?:pero )?|lamentablemente,? )?no puedo \w+(?: \S+){0,3}?"
    r" (?:(?:con |a )?(?:esta|esa|tu|su) (?:solicitud|petición|tarea)|(?:este|ese) (?:tipo de )?contenido)[.!]?"
)
_PORTUGUESE = (
    r"(?:(?:me )?desculpe,? (?:mas )?|sinto muito,? (?:mas )?|infelizmente,? )?(?:eu )?não posso \w+(?: \S+){0,3}?"
    r" (?:(?:a |com )?(?:essa|esta|sua) (?:solicitação|tarefa)|(?:esse|este) (?:tipo de )?conteúdo)[.!]?"
)
_ITALIAN = (
    r"(?:mi dispiace,? (?:ma )?|purtroppo )?non posso \w+(?: \S+){0,3}?"
    r" (?:(?:a |con )?(?:questa|tua) richiesta|questo (?:tipo di )?contenuto)[.!]?"
)
_RUSSIAN = (
    r"(?:извините,? (?:но )?|простите,? (?:но )?|к сожалению,? )?я не могу \w+(?: \S+){0,3}?"
    r" (?:эт\w+|ваш\w*|данн\w+|так\w+|подобн\w+) (?:запрос|контент|задани|задач)\w*[.!]?"
)
_DUTCH = (
    r"(?:(?:het spijt me|sorry|helaas),? (?:maar )?)?ik kan (?:je |u )?(?:hier|daar)(?:bij|mee)?(?: helaas)? niet"
    r" (?:bij |mee |aan )?(?:helpen|meewerken)(?:,? het spijt me)?[.!]?"
)
_POLISH = r"(?:(?:przepraszam|przykro mi|niestety),? (?:ale )?)?nie mogę (?:ci )?(?:[wz] tym pomóc|pomóc [wz] tym)[.!]?"
_OTHER_LANGUAGES = re.compile(
    "|".join(
        (_CHINESE, _JAPANESE, _KOREAN, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _RUSSIAN, _DUTCH, _POLISH)
    ),
    re.I,
)
_OFFER_IN_OTHER_LANGUAGES = re.compile(
    r"如果|如有|[请請]|有什[么麼]|もし|他に|別の|ほかに|혹시|다른"
    r"|wenn |falls |gerne? |si |s['’]il |puis-je |se |puedo |posso |если |могу "
    r"|¿(?:puedo|hay (?:algo|alguna)|en qué|quieres?|[tl]e gustaría)\b",
    re.I,
)

# "I cannot help with that" names no request. A character can write "I cannot help her with that", so these patterns
# have no word for a third person.
_NO_HELP = re.compile(
    "|".join(
        (
            rf"{_GERMAN_APOLOGY}(?:(?:dabei|damit) kann ich|(?:ich kann|kann ich) (?:dir |(?-i:Ihnen) )?(?:leider )?"
            r"(?:dabei|damit)) (?:dir |(?-i:Ihnen) )?(?:leider )?nicht (?:weiter)?helfen[.!]?",
            r"(?:lo siento(?: mucho)?,? (?:pero )?|lamentablemente,? )?no puedo ayudar(?:te)?"
            r" con (?:eso|esto|ello)[.!]?",
            r"(?:(?:me )?desculpe,? (?:mas )?|sinto muito,? (?:mas )?|infelizmente,? )?(?:eu )?não (?:posso|consigo)"
            r" (?:te )?ajudar(?:-te|-vos)?(?: vocês?)? com (?:isso|isto)[.!]?",
            r"(?:(?:je suis )?(?:vraiment )?désolée?,? (?:mais )?|malheureusement,? )?je ne peux pas"
            r" (?:vous |t['’])?aider (?:avec (?:ça|cela)|à ce sujet|pour cela)[.!]?",
            r"(?:mi dispiace,? (?:ma )?|purtroppo )?non posso aiutar(?:e|ti|vi) (?:con|in) (?:questo|ciò)[.!]?",
            r"(?:(?:извините|простите),? (?:но )?|к сожалению,? )?(?:я )?не могу (?:вам |тебе )?"
            r"(?:помочь (?:вам |тебе )?(?:с|в) эт[ои]м|(?:с|в) эт[ои]м (?:вам |тебе )?помочь)[.!]?",
            r"(?:大変)?申し訳(?:ありません|ございません)が?[、。 ]{0,2}"
            r"(?:(?:その|この)(?:件|こと|点)(?:について)?は?、?)?お(?:手伝い|応え|答え)(?:することは)?でき(?:ません|かねます)。?",
            r"(?:(?:很|非常|十分)?抱歉|对不起|對不起)[，,。 ]{1,2}(?:但是?)?我(?:无法|無法|不能)(?:[为為][您你])?"
            r"(?:提供(?:(?:这|這)方面的)?(?:协助|協助|帮助|幫助)|(?:协助|協助)[您你]?|(?:帮助|幫助)您)[。！]?",
            r"죄송(?:합니다|하지만|합니다만)[,. ]{0,2}(?:(?:그|이|해당) 부분은 )?도와드릴 수 (?:없습니다|없어요)\.?",
        )
    ),
    re.I,
)
_TO_YOU = re.compile(
    r"[您你]|请(?:随时)?告诉|請(?:隨時)?告訴|\b(?:dir|du|Ihnen|Sie|te|ti|tú|usted|ustedes|você|vocês|vous|tu|voi|вам|вас|тебе"
    r"|ayudarte|aiutarti|quieres|vuoi|хотите|хочешь)\b|\bt['’]|\ben (?:lo )?que (?:pueda|puedo) ayudarle\b"
    r"|드리|드릴|말씀해|お手伝い|お申し付け|お知らせ"
)
"""Words for the person who is addressed. "Sie" is also German for "she", but only at the beginning of a sentence."""


def declines(text: str) -> bool:
    """Return whether `text` is a refusal to write a diary, in one of the major languages."""
    if declined := _ENGLISH.match(text):
        rest = text[declined.end() :].strip()
        return not rest or is_offer(rest)
    if declined := _OTHER_LANGUAGES.match(text) or _NO_HELP.match(text):
        rest = text[declined.end() :].strip()
        return not rest or is_offer(rest) or _is_offer_in_another_language(rest)
    return False


def _is_offer_in_another_language(rest: str) -> bool:
    """Whether `rest` is a single sentence that begins like an offer and addresses somebody."""
    begins = _OFFER_IN_OTHER_LANGUAGES.match(rest) is not None
    return begins and _TO_YOU.search(rest) is not None and len(split_sentences(rest)) == 1
