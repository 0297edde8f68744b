"""The importance of sentences by rules, without a model. Pure.

Names, numbers, dates, promises, and statements of speakers about themselves raise the importance; questions, actions,
praise and small talk lower it. The rules for words cover English, German, Spanish, French, Japanese and Chinese. In
other languages only names, numbers and the kind of a sentence count, so fewer sentences are important enough.
"""

import re

from app.memories.memory import Category
from app.summarising.sentences import Kind

_START = 0.4
_NAME = 0.12
_MOST_NAMES = 2
_FIRST_PERSON = 0.1
_TIME = 0.08
_CATEGORY = 0.15
_STATED = 0.05  # in place of _CATEGORY for "I am" and "I have", which begin many empty sentences
_PROMISE = 0.15
_OF_KIND = {Kind.STATEMENT: 0.0, Kind.QUESTION: -0.3, Kind.ACTION: -0.1, Kind.NOTE: -0.1}
_SMALL_TALK = -0.3
_ASKS = -0.15  # a statement that goes on with a question
_VAGUE = -0.1  # a pronoun without its noun, in a sentence without a name

_SELF = re.compile(
    r"\bI(?:['’](?:m|ve|ll|d))?\b|\b[Mm](?:y|e|ine)\b"
    r"|\b(?:[Ii]ch|[Mm]ich|[Mm]ir|[Mm]ein(?:e[mnrs]?)?)\b"
    r"|\b(?:[Yy]o|[Mm]is?|[Mm]e|[Ss]oy|[Ee]stoy|[Tt]engo|[Vv]ivo|[Tt]rabajo|[Qq]uiero)\b"
    r"|\b(?:[Jj]e|[Mm]oi|[Mm]on|[Mm]a|[Mm]es)\b|\b[Jj]['’]"
    r"|私|わたし|僕|ぼく|俺|自分|我|咱"
)
_PROMISE_WORDS = re.compile(
    r"\b(?:promise[ds]?|swear|swore|vow(?:ed)?|pledge[ds]?|give you my word|never again)\b"
    r"|\b(?:verspr(?:eche|ochen)|schwöre|geschworen)\b|\b(?:prometo|prometí|promet[ií]do|juro|juré)\b"
    r"|\b(?:promets|promis|jure|juré)\b|約束|誓(?:う|い|っ)|答应|答應|发誓|發誓|保证|保證|承诺|承諾",
    re.I,
)
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|tomorrow|tonight|(?:last|next|this|every|a few) (?:night|week|weekend|month|year|summer"
    r"|winter|spring"
    r"|fall|autumn|days|weeks|months|years)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:days?|weeks?|months?"
    r"|years?) ago"
    r"|january|february|april|june|july|august|september|october|november|december|birthday|anniversary)\b"
    r"|\b(?:gestern|morgen|letzte[ns]? \w+|nächste[ns]? \w+|seit \w+)\b|\b(?:ayer|mañana|hace \w+|desde \w+)\b"
    r"|\b(?:hier|demain|depuis \w+|il y a \w+)\b|昨日|明日|先週|来週|去年|来年|昨天|明天|上周|下周|明年|生日|誕生日",
    re.I,
)
_SMALL_TALK_START = re.compile(
    r"\W{0,3}(?:you(?:['’](?:re|ve|ll))?|your|that(?:['’]s)?|thanks?|thank you|wow|congrat\w*|hey|hi|hello|good"
    r"|sounds|glad|so (?:glad|happy|sorry)|means a lot|let me know|i get it|wishing|how about|check (?:it|this"
    r"|out)|take a look|cheers|sorry|gotta|I (?:totally |completely )?agree"
    r"|great|awesome|cool|nice|sure|keep|no problem|take care|bye"
    r"|hallo|danke|gut|tschüss|hola|gracias|qué|bonjour|salut|merci|こんにちは|おはよう|ありがとう|你好|谢谢|謝謝)\b",
    re.I,
)
_VAGUE_WORDS = re.compile(
    r"\W{0,3}(?:(?:and|but|so|yeah) )?(?:it|they|those|these|this|he|she|es|das|ça|cela|eso)\b"
    r"|.*\bI(?:['’]d)? (?:\w+ ){0,2}(?:love|like|enjoy|hate|take|appreciate|need) (?:it|them|that|this)\b"
    r"|.*\b(?:it|them|there|that|this|one)\W*$",
    re.I,
)
_STATED_WORDS = re.compile(r"\bI(?:['’](?:m|ve)| am| was| have| had| got)\b")
_CATEGORIES: tuple[tuple[Category, re.Pattern[str]], ...] = (
    (
        "goal",
        re.compile(
            r"\bI(?:['’](?:m|ll|d|ve))? (?:\w+ ){0,2}?(?:want(?:ed)? to (?!(?:let|share|show|tell|say|ask|thank)\b)"
            r"|plan(?:ning)? (?:to|on)|hop(?:e|ing) to"
            r"|dream(?:ed|ing)? of|decided to|aim(?:ing)? to|working on|looking for)"
            r"|\bI(?:['’]d| would) (?:\w+ )?(?:like|love) to\b|\bmy (?:\w+ )?(?:goal|dream|plan|ambition)s?\b"
            r"|\bich (?:will|möchte|werde|plane|habe vor)\b|\b(?:quiero|voy a|planeo|mi (?:meta|sueño))\b"
            r"|\bje (?:veux|voudrais|vais|compte)\b|たいです|たいと|つもり|予定|我(?:想|要|打算|希望)",
            re.I,
        ),
    ),
    (
        "preference",
        re.compile(
            r"\bI(?:['’](?:m|ve))? (?:(?:really|also|still|just|always|absolutely|a|an|so) ){0,2}(?:love|loved"
            r"|like|enjoy(?:ed)?|hate|prefer|adore|can['’]?t stand"
            r"|dislike|fond of|into|passionate about|obsessed with|a (?:big |huge )?fan of)\b|\bmy favou?rite\b"
            r"|\bich (?:liebe|mag|hasse|bevorzuge)\b|\blieblings\w+|\b(?:me (?:gusta|encanta)n?|prefiero|odio"
            r"|mi \w+ favorit[oa])\b"
            r"|\bj['’](?:aime|adore)\b|\bje (?:préfère|déteste)\b|\bmon \w+ préféré|好き|嫌い|大好"
            r"|(?:我|最)(?:喜欢|喜歡|爱|愛|讨厌|討厭)",
            re.I,
        ),
    ),
    (
        "relationship",
        re.compile(
            r"\b(?:my|our) (?:\w+ ){0,2}?(?:mom|mum|mother|dad|father|parents|brother|sister|sibling|son"
            r"|daughter|kid|kids"
            r"|child|children|wife|husband|partner|girlfriend|boyfriend|fianc[ée]+|friend|friends|grand\w+|aunt|uncle"
            r"|cousin|family|dog|cat|pet|pets|puppy|colleague|boss|neighbou?r)s?\b|\b(?:got|getting"
            r"|am) (?:married|engaged)\b"
            r"|\bmein(?:e[mnr]?)? (?:\w+ )?(?:mutter|vater|eltern|bruder|schwester|sohn|tochter|frau|mann|freund\w*)\b"
            r"|\bmis? (?:madre|padre|padres|herman[oa]s?|hij[oa]s?|espos[oa]|novi[oa]|amig[oa]s?)\b"
            r"|\bm(?:on|a|es) (?:mère|père|parents|frère|sœur|fils|fille|mari|femme|ami\w*)\b"
            r"|(?:私|僕|俺)の(?:母|父|兄|弟|姉|妹|妻|夫|友)|我的?(?:妈妈|媽媽|爸爸|哥哥|弟弟|姐姐|妹妹|妻子|丈夫|老公|老婆|朋友|儿子|女儿)",
            re.I,
        ),
    ),
    (
        "technical",
        re.compile(
            r"\b(?:we|I|my)\b.{0,60}\b(?:python|javascript|typescript|rust|java|fastapi|django|react|postgres\w*|sqlite"
            r"|linux|docker|kubernetes|api|endpoint|database|repository|framework|compiler|gpu)\b",
            re.I,
        ),
    ),
    (
        "personal",
        re.compile(
            r"\bI(?:['’](?:m|ve)| am| have)? (?:(?:just|recently|also|finally|even|used to"
            r"|still) ){0,2}(?:work(?:ed|ing)? (?:as|at|for|in)"
            r"|live(?:d)?|moved|grew up|stud(?:y|ied|ying)|graduated|started|joined|bought|adopted|lost|won|met"
            r"|went|visited|quit"
            r"|opened|signed up|volunteer(?:ed|ing)?|learn(?:ed|ing)|created|took|attended|began|finished"
            r"|received|planted)\b"
            r"|\bI(?:['’]m| am| was) (?:an?|from|born|allergic|diagnosed|called|named|\d+)\b"
            r"|\bmy (?:job|work|birthday|home|house|apartment|health|boss|business|career|childhood|degree)\b"
            r"|\b(?:allergic|diagnosed)\b"
            r"|\bich (?:bin|heiße|wohne|arbeite|habe|komme aus|war)\b|\bmein name\b"
            r"|\b(?:me llamo|soy|vivo|trabajo|tengo|nací|mi nombre)\b"
            r"|\bje (?:suis|m['’]appelle|travaille|viens)\b|\bj['’](?:ai|habite|étais)\b|\bmon nom\b"
            r"|(?:私|僕|俺)は|住んでい|働いてい|生まれ|我(?:是|住|在|有|的名字)|我叫(?![了他她它你您我们們外车車不停醒人救])",
            re.I,
        ),
    ),
)


def rate_sentence(said: str, kind: Kind, names: int) -> float:
    """Return the importance of a sentence, from 0 to 1; `names` is the number of its names and numbers."""
    rating = _START + _NAME * min(names, _MOST_NAMES) + _OF_KIND[kind]
    if _SELF.search(said):
        rating += _FIRST_PERSON
    if find_category(said):
        rating += _CATEGORY
    elif _STATED_WORDS.search(said):
        rating += _STATED
    if _TIME_WORDS.search(said):
        rating += _TIME
    if _PROMISE_WORDS.search(said):
        rating += _PROMISE
    if kind is not Kind.QUESTION and said.rstrip("\"'”’»」』…").endswith(("?", "？", "؟")):
        rating += _ASKS
    if not names and _VAGUE_WORDS.match(said):
        rating += _VAGUE
    if _SMALL_TALK_START.match(said):
        rating += _SMALL_TALK
    return round(min(max(rating, 0.0), 1.0), 2)


def find_category(said: str) -> Category | None:
    """Return the first category whose words `said` contains, or None."""
    return next((category for category, words in _CATEGORIES if words.search(said)), None)
