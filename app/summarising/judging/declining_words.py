"""The words with which models decline, by language, as parts of regular expressions. Pure.

`unable` says that the speaker will not or cannot do something. `task` has names of the declined task, in phrases that a
character would hardly use. An ordinary word needs an addition that shows that the task is meant: "this content" names
the task, "the content of the letter" does not.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """How models decline in one language; see the module."""

    unable: tuple[str, ...]
    task: tuple[str, ...]


def _any(*words: str) -> str:
    return rf"(?:{'|'.join(words)})"


# --- English ---

_DOING = _any(
    *("help(?:ing)?", "assist(?:ing)?", "continu(?:e|ing)", "proceed(?:ing)?", "creat(?:e|ing)", "generat(?:e|ing)"),
    *(
        "produc(?:e|ing)",
        "provid(?:e|ing)",
        "writ(?:e|ing)",
        "includ(?:e|ing)",
        "engag(?:e|ing)",
        "participat(?:e|ing)",
    ),
    *("summari[sz](?:e|ing)", "recap(?:ping)?", "role-?play(?:ing)?", "fulfil+(?:ing)?", "comply(?:ing)?"),
    *("complet(?:e|ing)", "process(?:ing)?", "extract(?:ing)?", "fold(?:ing)?", "compress(?:ing)?", "condens(?:e|ing)"),
    *(
        "describ(?:e|ing)",
        "depict(?:ing)?",
        "portray(?:ing)?",
        "discuss(?:ing)?",
        "respond(?:ing)?",
        "accommodat(?:e|ing)",
    ),
)
_CANNOT = _any(
    *("can['’]?t", "can ?not", "won['’]?t", "will not", "must not", "decline", "refuse"),
    *("unable", "not able", "not going", "not willing", "not allowed", "not permitted", "not comfortable"),
    *("uncomfortable", "(?:do not|don['’]t)(?: \\w+)? (?:feel|be) comfortable", "rather not", "prefer not"),
)
_EXPLICIT = _any(
    *("sexual", "sexually", "sexually explicit", "explicit", "graphic", "nsfw", "adult", "mature", "erotic", "harmful"),
    *("inappropriate", "sensitive", "non-?consensual", "violent", "unsafe"),
)
_MATTER = _any(
    *("content", "material", "scenarios?", "themes?", "conversations?", "situations?", "activit(?:y|ies)", "scenes?"),
    *("nature", "entries", "details?", "acts?"),
)
_THING = rf"(?:content|material|summar\w+|role-?plays?|{_EXPLICIT})"
ENGLISH_POLICY = (
    r"(?:usage|content|safety|community|ethical|moderation|management|use) (?:management )?"
    r"(?:polic(?:y|ies)|guidelines?|standards|filters?|systems?)"
)
_ENGLISH = Words(
    unable=(
        rf"\bI(?:['’](?:m|d|ll))? (?:\w+ ){{0,3}}?{_CANNOT}(?: \w+){{0,3}}? {_DOING}\b",
        r"\b(?:isn['’]t|is not|not) something (?:that )?I(?:['’]m| am|['’]d| can| will| feel)\b",
        r"\bI (?:need|have|must) (?:to )?(?:respectfully )?decline\b",
        r"\bI don['’]t think I should (?:write|continue|summari[sz]e)\b",
        rf"\bI (?:do not|don['’]t) (?:engage|participate|create|generate|produce|role-?play) (?:\w+ ){{0,2}}{_THING}\b",
        r"\bfalls outside (?:of )?what I can\b|\bnot appropriate for me to\b|\bagainst my (?:values|guidelines)\b",
        rf"^\W*(?:unfortunately,? |sorry,? )?(?:unable|not able) to {_DOING}\b",
        rf"\b(?:and|but) (?:can['’]?t|cannot) {_DOING} {_EXPLICIT}\b",
        r"\bmy (?:guidelines|polic(?:y|ies)|instructions) (?:prohibit|prevent|forbid|do not allow|don['’]t allow)\b",
    ),
    task=(
        rf"\b{_EXPLICIT} (?:\w+ ){{0,2}}{_MATTER}\b",
        r"\b(?:this|that|such|the provided|the given) (?:\w+ )?(?:content|material)\b",
        r"\bthis kind of content\b",
        r"\b(?:content|material) (?:that|which|involving|of (?:a|this|that))\b",
        rf"\b{ENGLISH_POLICY}\b",
        r"\b(?:this|any) role-?play\b",
        r"\bsummar\w+ (?:of )?(?:this|these|the) (?:\w+ )?(?:content|material|messages|entries|conversation|chat)\b",
        r"\b(?:language|ai) model\b|\bai assistant\b",
        r"\bas an? (?:\w+ )?ai\b.{0,60}\b(?:summary|content|role-?play|material|response)\b",
        rf"\bcontent (?:that )?I(?:['’]m| am) {_CANNOT}",
        r"\bsexuali[sz]es\b",
    ),
)

ENGLISH_MARKS = (
    "request", r"summar\w+", "content", "material", "role-?play", "scenarios?", "conversation", "this story", "scenes?",
    "topics?", "something else", "direction", "instead", r"help (?:you|write|with)", "assist(?:ant)?", "programmed",
    "helpful", "harmless", "guidelines", r"polic\w+", "depicts", r"involv\w+", "explicit", "sexual", "inappropriate",
    "appropriate", "respectful", "fictional", r"you(?:['’]re| are| have|['’]ve)? (?:looking for|asking|sharing|shared)",
)  # fmt: skip
"""Words that are common in refusals. A single one proves nothing; see `_only_refuses` in `declining.py`."""

# --- other languages ---


def _words(cannot: str, doing: str, *task: str, before: bool = False) -> Words:
    """Return the words of a language; `before` if the verb comes before "cannot"."""
    unable = rf"{doing}.{{0,16}}?{cannot}" if before else rf"{cannot}.{{0,60}}?\b{doing}"
    return Words((unable,), task)


_GERMAN = _words(
    r"\b(?:ich (?:kann|werde|möchte|darf|bin)|(?:kann|werde|möchte|darf|bin) ich)\b.{0,80}?\b(?:nicht|keine)\b",
    _any(
        "zusammen(?:zu)?fass",
        "helfen",
        "weiterhelfen",
        "fortsetz",
        "fortfahr",
        "erstell",
        "schreib",
        "bearbeit",
        "dienen",
    ),
    r"\bals (?:KI|Sprachmodell|KI-\w+)\b",
    r"\b(?:dies|solch)\w+ (?:Art von |Art )?(?:Inhalt|Material)\w*",
    r"\b(?:sexuell|explizit|anstößig|pornogra)\w* (?:Inhalt|Material|Szen|Handlung)\w*",
    r"\b(?:Nutzungs|Inhalts|Sicherheits|meine )\w*richtlinien",
)
_DUTCH = _words(
    r"\b(?:ik (?:kan|wil|mag|zal)|(?:kan|wil|mag|zal) ik)\b.{0,60}?\b(?:niet|geen)\b",
    _any("meewerken", "helpen", "samenvat", "doorgaan", "voortzetten", "maken", "schrijven", "voldoen", "verder"),
    r"\bals (?:AI|AI-\w+|taalmodel)\b",
    r"\b(?:dit|deze|dergelijke)\b[^,.]{0,20}\b(?:inhoud|materiaal)\b",
    r"\b(?:expliciete?|seksuele?) (?:inhoud|materiaal|scènes?)\b",
)
_POLISH = _words(
    r"\bnie (?:mogę|będę|jestem w stanie|chcę)\b",
    _any("pomóc", "podsumow", "streści", "kontynuow", "stworzy", "wygenerow", "napisa", "spełni"),
    r"\bjako (?:AI|model\w*|asystent\w*)\b",
    r"\btreści\b[^.]{0,20}\b(?:seksualn|erotyczn|jawn)\w*|\b(?:seksualn|erotyczn)\w* treści\b",
    r"\b(?:tej|tych|takich|tego typu) treści\b",
)
_FRENCH = _words(
    r"\bje ne (?:peux|veux|vais|souhaite|suis|me sens)\b.{0,40}?\bpas\b",
    _any(
        "résumer", "aider", "continuer", "poursuivre", "créer", "générer", "écrire", "répondre", "rédiger", "l['’]aise"
    ),
    r"\ben tant qu(?:e modèle|['’](?:IA|assistant|intelligence))\w*",
    r"\bcontenus? (?:\w+ )?(?:explicite|sexuel)\w*",
    r"\b(?:ce (?:type|genre) de|de tels) contenus?\b",
)
_SPANISH = _words(
    r"\bno (?:puedo|voy a|quiero|me siento (?:cómod[oa]|a gusto))\b",
    _any("resum", "ayud", "continu", "segu", "cre", "gener", "escrib", "cumpl"),
    r"\bcomo (?:modelo|asistente|IA)\b",
    r"\b(?:este|ese) (?:tipo de )?(?:contenido|material)\b",
    r"\b(?:contenidos?|material) (?:de carácter )?(?:sexual|explícito)\w*",
)
_ITALIAN = _words(
    r"\bnon (?:posso|voglio|intendo|sono in grado di|mi sento a mio agio)\b",
    _any("riassum", "aiut", "continu", "crea", "genera", "scriv", "soddisf", "elabora"),
    r"\b(?:come|in quanto) (?:modello|assistente|IA)\b",
    r"\bquest[oi] (?:tipo di )?(?:contenut[oi]|materiale)\b",
    r"\bcontenut[oi] (?:sessual|esplicit|che non posso)\w*",
)
_PORTUGUESE = _words(
    r"\bnão (?:posso|consigo|vou|quero|me sinto confortável)\b",
    _any("resum", "ajud", "continu", "cri", "ger", "escrev", "atend"),
    r"\bcomo (?:um )?(?:modelo|assistente|IA)\b",
    r"\b(?:este|esse) (?:tipo de )?(?:conteúdo|material)\b",
    r"\bconteúdos? (?:sexua|explícit)\w*",
)
_RUSSIAN = _words(
    r"\bя (?:не (?:могу|буду|стану|хочу)|отказываюсь)\b",
    _any("помо[чг]", "переска[зж]", "резюмир", "продолж", "созда", "напис", "выполн", "обобщ"),
    r"\bкак (?:языковая модель|ИИ|ассистент)",
    r"\bконтент\w*|\b(?:так|эт|данн|подобн)\w+ (?:содержан|запрос|материал)\w*",
    r"\b(?:сексуальн|откровенн)\w* (?:содержан|характер|сцен)\w*",
)
_UKRAINIAN = _words(
    r"\bя не (?:можу|буду|хочу)\b",
    _any("допомо", "підсум", "переказ", "продовж", "створ", "напис", "викон"),
    r"\bяк (?:мовна модель|ШІ|асистент)",
    r"\bконтент\w*",
)
_TURKISH = _words(
    r"(?:yapamam|edemem|olamam|özetleyemem|oluşturamam|yazamam|edemiyorum|olamıyorum)\b",
    _any("yardımcı", "devam", "özet", "içerik", "bu istek"),
    r"\b(?:bu tür|cinsel|müstehcen|uygunsuz) içeri\w+",
    r"\byapay zek[aâ]\w* (?:olarak|modeli)",
    before=True,
)
_JAPANESE = _words(
    r"(?:できません(?!でした)|できかねます|いたしかねます|応じられません(?!でした))",
    _any("要約", "まとめ", "対応", "お手伝い", "生成", "回答", "お応え"),
    r"AI(?:アシスタント|モデル)?として|言語モデル",
    r"性的な(?:内容|コンテンツ|描写)|露骨な|不適切な(?:内容|コンテンツ)|ポリシー|ガイドライン",
    r"(?:その|この)(?:内容|会話|コンテンツ)|要約",
    before=True,
)
_CHINESE = Words(
    unable=(
        r"我(?:无法|無法|不能|不便|不会|不會|拒绝|拒絕)[^，。]{0,12}?"
        r"(?:总结|總結|概括|摘要|生成|继续|繼續|提供|协助|協助|帮助|幫助|整理)",
        r"(?:无法|無法|不能)(?:[为為](?:您|你)|进行|進行|提供)(?:总结|總結|摘要)",
    ),
    task=(
        r"(?:作为|身为|作為)(?:一[个個])?(?:AI|人工智能|人工智慧|语言模型|語言模型)",
        r"性[内內]容|露骨|色情|(?:不当|不當|敏感|成人)(?:内容|內容|情节|情節)|使用政策",
        r"(?:这|這|该|該|此)(?:段|些|类|類)?(?:内容|內容|对话|對話)",
    ),
)
_KOREAN = _words(
    r"(?:수 없습니다|수 없어요|어렵습니다)",
    _any("요약", "도와드", "도움을 드", "생성", "작성", "제공"),
    r"AI ?(?:어시스턴트|모델)?로서|언어 모델",
    r"선정적인|성적인 (?:내용|콘텐츠)|부적절한 (?:내용|콘텐츠)|가이드라인|(?:해당|이) (?:내용|대화)|정책상",
    before=True,
)

LANGUAGES = (
    *(_ENGLISH, _GERMAN, _DUTCH, _POLISH, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _RUSSIAN, _UKRAINIAN, _TURKISH),
    *(_JAPANESE, _CHINESE, _KOREAN),
)
