"""Finds sentences in which speakers state who they are, what they like, or what they promise. Pure.

Only such sentences are certain enough for the core block `facts`, which is in every prompt. A sentence about an event
can be as important as such a sentence, but only for a while. If the caller gave a message an importance, only this
importance decides whether its sentences reach the block. The rules recognise the first person in English, German,
Spanish, French, Japanese and Chinese.
"""

import re

from app.consolidation.said_names import read_name
from app.summarising.judging.speech import count_letters, divide
from app.summarising.sentences import Kind, count_words, split_sentences

MOST_UNCERTAIN = 0.69
"""The limit of the importance of a quoted sentence that is not certain. It is too low for the block `facts`."""

_IDENTITY = re.compile(
    r"\b[Mm]y (?:full |first |last |real |middle |nick)?name(?:['’]s| is)\b"
    r"|\bI(?:['’]m| am|['’]ve been| have been|['’]ve always been)"
    r" (?:(?:also|actually|originally|still|now|just) ){0,2}"
    r"(?:(?:from|allergic|diagnosed|called|named|married|engaged|divorced|single|vegan|vegetarian|pregnant"
    r"|trans\w*|gay|bisexual|a lesbian|deaf|blind|\d{1,3} years old)\b"
    r"|an? (?!bit\b|little\b|lot\b|few\b|huge\b|big\b|total\b|sucker\b|mess\b|step\b|wreck\b|fan\b)(?:[\w'’-]+ ){0,3}?"
    r"(?:\w+(?:er|or|ist|ian|ant|man|woman|ee)|nurse|coach|chef|cook|student|guard|mom|mum|dad|mother|father|parent"
    r"|orphan|veteran|judge|pilot|vet|athlete|guide|entrepreneur|poet|monk|nun|priest|widow|immigrant|refugee)\b)"
    r"|\bI was (?:born|raised|diagnosed|adopted|named)\b|\bI grew up (?:in|on|with)\b"
    r"|\bI (?:(?:currently|still|now|also) )?(?:live|work|teach|study|major) (?:in|at|as|for|near)\b"
    r"|\bI(?:['’]ve| have) (?:lived|worked|taught|studied) (?:in|at|as|for|near)\b"
    r"|\bI(?:['’]m| am) (?:currently |now )?(?:living|working|studying) (?:in|at|as|for)\b"
    r"|\b[Mm]y (?:birthday|hometown|job|day job|home|profession|native language|mother tongue|blood type|zodiac sign)"
    r"(?:['’]s| is)\b|\bI have (?:asthma|diabetes|a (?:degree|disability|condition)|an? [\w-]+ allergy)\b"
    r"|\b(?:[Ii]ch heiße|[Mm]ein [Nn]ame ist|[Ii]ch (?:wohne|lebe|arbeite|studiere))\b"
    r"|\b[Ii]ch bin (?:eine?\b|aus\b|geboren\b|\d)"
    r"|\b(?:[Mm]e llamo|[Mm]i nombre es|[Ss]oy (?:de|una?)|[Vv]ivo en|[Tt]rabajo (?:en|como|de|para)|[Nn]ací)\b"
    r"|\b[Jj]e m['’]appelle\b|\b[Mm]on nom est\b|\b[Jj]e suis (?:une?|née?|de)\b|\b[Jj]['’]habite\b"
    r"|\b[Jj]e travaille\b"
    r"|(?:私|わたし|僕|ぼく|俺)は.{0,30}(?:です|住んで|働いて|生まれ)"
    r"|我(?:是|住在|来自|來自|出生)"
)
_GIVES_NAME = re.compile(r"我(?:叫|的名字)|(?:私|わたし|僕|ぼく|俺)の名前は")
"""Words that also begin "I ordered" in Chinese, and remarks about a name. What follows decides."""
_PREFERENCE = re.compile(
    r"\b[Mm]y (?:all-time |absolute |personal |new )?favou?rites?(?: [\w'’-]+){0,4} (?:is|are) (?!when\b|that\b|this\b)"
    r"|\b(?:is|are) (?:one of )?my (?:all-time |absolute )?fav(?:e|ou?rite)s?\b"
    r"|(?<![Aa]s )\bI(?: (?:really|also|still|just|always|absolutely|both|particularly|especially)){0,2}"
    r"(?: (?:love|enjoy|hate|adore|prefer|dislike|detest|can['’]?t stand|cannot stand)"
    r"|(?:['’]ve| have) (?:always|never) (?:loved|liked|enjoyed|hated|preferred)|['’]?(?:d)? prefer) "
    r"(?!it\b|that\b|this\b|them\b|those\b|these\b|you|their\b|his\b|her\b|him\b|how\b|when\b|what\b|to (?:hear|see)\b"
    r"|the (?:way|idea|look|sound|thought|vibe|feel)\b|hearing\b|seeing\b|talking\b|chatting\b|about\b|for\b|so\b|and\b"
    r"|there\b|a good\b)\w"
    r"|\bI(?:['’]m| am| have been|['’]ve (?:always )?been)"
    r" (?:(?:really|also|still|so|super|always|a|an|big|huge) ){0,3}"
    r"(?:into|fond of|passionate about|obsessed with|scared of|afraid of|terrified of|fan of)"
    r" (?!it\b|that\b|this\b|them\b|you)"
    r"|\b[Ii]ch (?:liebe|hasse|bevorzuge|mag)\b|\b[Mm]eine? [Ll]ieblings\w+"
    r"|\b(?:[Mm]e (?:gusta|encanta)n?|[Pp]refiero|[Oo]dio|[Mm]i \w+ favorit[oa])\b"
    r"|\b[Jj]['’](?:aime|adore)\b|\b[Jj]e (?:préfère|déteste)\b|\b[Mm]on \w+ préféré"
    r"|(?:私|わたし|僕|ぼく|俺)は.{0,30}(?:好き|嫌い)|我(?:最|很|不|非常|特别|特別)?(?:喜欢|喜歡|讨厌|討厭)"
)
_PROMISE = re.compile(
    r"\bI(?:['’](?:ve|ll|d)| have| had| will)? (?:(?:just|also|solemnly|hereby|still) )?"
    r"(?:promised?|swear|swore|vow(?:ed)?|pledged?),? \w|\b(?:give|gave) you my word\b|\b[Mm]y promise\b"
    r"|\b[Ii]ch (?:verspreche|schwöre|habe? .{0,40}versprochen)\b|\b(?:[Tt]e lo )?(?:[Pp]rometo|[Pp]rometí|[Jj]uro)\b"
    r"|\b[Jj]e (?:te |vous )?(?:le )?(?:promets|jure)\b|約束(?:する|します|した|しました)|誓(?:う|い|っ)"
    r"|我(?:答应|答應|保证|保證|发誓|發誓|承诺|承諾)"
)

_CLAUSE_END = re.compile(r"[.,!?;:…—–。！？、，]| - ")
_VAGUE = re.compile(r"\b(?:it|they|them|these|those|this|him|her)\b", re.I)
"""A preference is not certain if the rest of its clause contains one of these pronouns."""

_LAST_ACTION = re.compile(r"(?<![*\w])\*([^\W\d_A-ZÀ-Þ][^*\n]*)\*[.!…]?[ \t]*$", re.M)
"""An action at the end of a line, such as `*bows deeply*`. With a capital it is no action: `*Dune*` can be a title."""
_TITLE_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SMALL_TITLE_WORD = re.compile(
    r"an?|and|as|at|but|by|for|from|in|into|of|on|or|the|to|with|das|den?|del|der|des|di|die|du|el|en|et|las?|les?|los"
    r"|und|y"
)


def tells_story(text: str) -> bool:
    """Return whether a message narrates: it has an action such as `*bows*`, or speech and text outside of the speech.

    The "I" of such a message can be a character instead of the speaker. A single word or a title between quotation
    marks is no speech.
    """
    divided = divide(text)
    if any(map(_is_speech, divided.speech)) and count_letters(divided.narration) > 0:
        return True
    if "*" not in text:
        return False
    return any(one.kind is Kind.ACTION for one in split_sentences(text)) or _LAST_ACTION.search(text) is not None


def _is_speech(quotation: str) -> bool:
    """Whether a quotation has several words and is no title.

    It is a title if all of its words begin with capitals, except for small words such as "of".
    """
    words = _TITLE_WORD.findall(quotation)
    is_title = all(word[0].isupper() or _SMALL_TITLE_WORD.fullmatch(word) for word in words)
    return count_words(quotation) > 1 and not is_title


def is_certain(said: str, kind: Kind) -> bool:
    """Return whether a sentence states an identity, a preference or a promise in the first person."""
    if kind is not Kind.STATEMENT or said.rstrip("\"'”’»」』…").endswith(("?", "？", "؟")):
        return False
    if _IDENTITY.search(said) or _PROMISE.search(said):
        return True
    if any(read_name(said[found.start() :]) for found in _GIVES_NAME.finditer(said)):
        return True
    return any(not _VAGUE.search(_CLAUSE_END.split(said[found.end() :], 1)[0]) for found in _PREFERENCE.finditer(said))
