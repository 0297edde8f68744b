"""Finds the first and the second person in a narration, in the languages whose words for them are unmistakable. Pure.

A text in any other language has no finding. A summary that leaves out quotation marks may contain a few of these words,
so the findings are counted and compared with the length of the text.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from app.summarising.sentences import count_words


def _words(*words: str) -> str:
    return rf"\b(?:{'|'.join(words)})\b"


_JA_WORD = r"[\u30a0-\u30ff\u3400-\u9fff々]"
_JA_PARTICLES = "|".join(
    (
        rf"(?<={_JA_WORD}[はをて])",
        rf"(?<={_JA_WORD}[いきぎけげしじせちっねべめれん]て)",
        *(rf"(?<={_JA_WORD}{stem}て)" for stem in ("つめ", "きしめ")),
        *(rf"(?<={word}は)" for word in ("わたし", "あたし", "ぼく", "おれ")),
    )
)
_JA_KIMI = rf"(?:(?<![\u3040-\u30ff\u3400-\u9fff々])|{_JA_PARTICLES})(?:君|きみ(?!とし|とも|のり|のぶ|はる|もと))"
"""The Japanese pronoun 君. After a name it is none (健太君, ゆうと君), and きみ can begin a name (きみとし).

So it counts only at the beginning of a clause, and after は, を or て if the word before the particle is written
with other characters, because a name such as はやて or いろは is not.
"""

_FIRST = {
    # A small "i" does not count: it is the Polish "and", or the number of an item. Nor does the "I" of "World War I".
    "en": r"(?<!War )(?<!Part )(?<!Act )(?<!Book )(?<!Chapter )\bI\b(?!\.\s?[A-Z])|"
    + _words("[Mm]e", "[Mm]y", "[Mm]yself", "[Ww]e", "[Oo]ur", "us", "[Oo]urselves"),
    "de": _words("[Ii]ch", "[Mm]ich", "[Mm]ir", "[Mm]ein(?:e[mnrs]?)?"),
    "nl": _words("[Ii]k", "[Mm]ij", "[Mm]ijn"),
    "fr": r"\b[Jj]['’](?=\w)|" + _words("[Jj]e", "[Mm]oi", "mon", "mes"),
    "es": _words("[Yy]o", "mi", "[Mm]is", "[Mm]í", "[Cc]onmigo", "[Mm]e"),
    "pt": _words("[Ee]u", "[Mm]eus?", "[Mm]inhas?", "[Cc]omigo", "[Mm]im"),
    "it": _words("[Ii]o", "mio", "mia", "miei", "mie"),
    "ru": _words("[Яя]", "[Мм]еня", "[Мм]не", "[Мм]ной", "[Мм]о[йяёеию]", "[Мм]оего", "[Мм]оей"),
    "uk": _words("[Яя]", "[Мм]ене", "[Мм]ені", "[Мм]ій", "[Мм]о[яєї]"),
    "pl": _words("[Jj]a", "[Mm]nie", "[Mm]ną", "[Mm]ój", "[Mm]oj[aąeę]", "[Mm]oim"),
    "ja": r"(?<![\u3040-\u30ff\u3400-\u9fff])(?:私|僕|俺|わたし|ぼく|あたし)(?:は|が|の|を|に|も)",
    "zh": r"(?<!自)我",
    "ko": r"(?<![가-힣])(?:나는|내가|나의|나를|저는|제가)(?![가-힣])",
}
_SECOND = {
    "en": _words("[Yy]ou", "[Yy]our", "[Yy]ours", "[Yy]ourself"),
    "de": _words("[Dd]u", "[Dd]ich", "[Dd]ir", "[Dd]ein(?:e[mnrs]?)?"),
    "nl": _words("[Jj]ij", "[Jj]ou", "[Jj]ouw"),
    "fr": r"\b[Tt]['’](?=\w)|" + _words("[Tt]u", "[Tt]oi", "[Tt]es", "[Vv]ous", "[Vv]otre"),
    "es": _words("[Tt]ú", "[Tt]u", "[Tt]us", "[Cc]ontigo", "[Tt]i"),
    "pt": _words("[Vv]ocê", "[Tt]eus?", "[Tt]ua", "[Cc]ontigo"),
    "it": _words("[Tt]u", "[Tt]uo", "[Tt]ua", "[Tt]uoi", "[Tt]ue"),
    "ru": _words("[Тт]ы", "[Тт]ебя", "[Тт]ебе", "[Тт]обой", "[Тт]во[йяёеию]", "[Тт]воего", "[Тт]воей"),
    "uk": _words("[Тт]и", "[Тт]ебе", "[Тт]обі", "[Тт]вій", "[Тт]во[яєї]"),
    "pl": _words("[Tt]y", "[Cc]iebie", "[Tt]obie", "[Tt]obą", "[Tt]wój", "[Tt]woj[aąeę]"),
    "ja": rf"(?:あなた|お前|{_JA_KIMI})(?:は|が|の|を|に|も|と|へ)",
    "zh": r"[你您]",
    "ko": r"(?<![가-힣])(?:너는|네가|너의|너를|당신(?:은|이|의|을)?)(?![가-힣])",
}
_PATTERNS = {language: (re.compile(first), re.compile(_SECOND[language])) for language, first in _FIRST.items()}
_SAYS_I = ("en", "de", "fr", "nl")
"""Languages in which a sentence about oneself always has a word for the first person."""

# Phrases that a report may contain without quotation marks: "said I love you for the first time", "a thank you note".
_SET_PHRASES = re.compile(r"\bI love you(?: too)?\b|\b[Tt]hank[ -]you\b|\bI do\b|\bich liebe dich\b|\bje t['’]aime\b")
# Speech after a colon does not count: "Kai told Mira: I will wait for you." But after a name alone ("Kai: …"), it is
# a line of a dialogue, as in a play, and counts.
_AFTER_COLON = re.compile(
    r"((?:[^\s:：.!?。！？]{1,30}[ \t]){2,9}[^\s:：.!?。！？]{1,30}[:：][ \t]?|(?:说|說|道|问|問|答|った|다)[:：])"
    r"[^.!?。！？\n]*"
)


@dataclass(frozen=True, slots=True)
class Persons:
    """How often a narration uses the first and the second person, and how many words it has."""

    first: int
    second: int
    words: int

    @property
    def goes_on(self) -> bool:
        """Whether the text seems to go on with the story: "I" and "you" are too frequent to be mistakes of a report."""
        found = self.first + self.second
        return (found >= 3 and 40 * found >= self.words) or (found >= 2 and 12 * found >= self.words)

    @property
    def addresses(self) -> bool:
        """Whether the text talks to somebody."""
        return self.second >= 3 and 15 * self.second >= self.words


def count_persons(narration: str, language: str | None, names: Collection[str] = ()) -> Persons | None:
    """Return how often `narration` uses the first and second person; None for a language without known words.

    `names` are not counted: an Italian may be called Mia, and a user "You".
    """
    patterns = _PATTERNS.get(language or "")
    if patterns is None:
        return None
    text = _SET_PHRASES.sub(" ", without_reported_speech(narration))
    if known := [re.escape(name) for name in sorted(names, key=len, reverse=True) if name.strip()]:
        text = re.sub(rf"(?<!\w)(?:{'|'.join(known)})(?!\w)", " ", text)
    first, second = (len(pattern.findall(text)) for pattern in patterns)
    return Persons(first, second, max(count_words(text), 1))


def is_about(narration: str, name: str, language: str | None) -> bool:
    """Whether `narration` is about the person `name` and never says "I", in a language that requires the word."""
    persons = count_persons(narration, language)
    if language not in _SAYS_I or persons is None or persons.first or not name:
        return False
    return re.search(rf"\b{re.escape(name)}\b['’]?\w*[ \t]+\w", narration) is not None


def without_reported_speech(narration: str) -> str:
    """Return `narration` without speech that follows a colon and has no quotation marks."""
    return "\n".join(
        line if "：" not in line and ":" not in line else _AFTER_COLON.sub(r"\1", line)
        for line in narration.split("\n")
    )
