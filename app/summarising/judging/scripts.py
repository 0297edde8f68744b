"""Compares the scripts of two texts. Pure.

Chinese and Japanese share characters, so a text with Han characters counts as Japanese if it has some kana. Each
message is counted by itself: a Chinese story in which somebody speaks Japanese has both scripts.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from app.kit.refusals import Refusal

MIN_LETTERS = 10
"""A text with fewer letters, such as a name, is not compared."""

_MAIN_SHARE = 0.6
_MIN_SOURCE_SHARE = 0.15
_MIN_KANA_SHARE = 0.05

_CHINESE_AND_JAPANESE = ("han", "kana")

_NAMES = {
    "HIRAGANA": "kana",
    "KATAKANA": "kana",
    "KATAKANA-HIRAGANA": "kana",
    "HALFWIDTH": "kana",
    "CJK": "han",
    "IDEOGRAPHIC": "han",
    "FULLWIDTH": "latin",
}
_OF_LANGUAGES = {
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk", "kk", "ky", "mn", "tg"), "cyrillic"),
    **dict.fromkeys(("ar", "fa", "ur", "ps", "ug"), "arabic"),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), "devanagari"),
    "ja": "japanese",
    "zh": "han",
    "yue": "han",
    "ko": "hangul",
    "el": "greek",
    "he": "hebrew",
    "th": "thai",
}
_IN_LATIN = re.compile(
    "en|de|nl|fr|es|pt|it|pl|cs|sk|hu|ro|tr|vi|id|ms|sv|da|no|nb|nn|fi|et|lv|lt|sl|hr|sq|ca|gl|eu|is|ga|cy|af|tl"
)


def find_script_fault(text: str, sources: Iterable[str], language: str | None) -> Refusal | None:
    """Return a refusal if most of `text` is in a script that is rare in `sources` and is not that of `language`.

    `language` is the first part of a language tag, or None if the language of the sources is wanted.
    """
    scripts = count_scripts(text)
    if scripts.total() < MIN_LETTERS:
        return None
    main, letters = scripts.most_common(1)[0]
    found = sum((count_scripts(source) for source in sources), Counter[str]())
    wanted = script_of(language)
    is_unknown = found.total() < MIN_LETTERS or (language is not None and wanted is None)
    if is_unknown or letters < _MAIN_SHARE * scripts.total() or main == wanted:
        return None
    if found[main] >= _MIN_SOURCE_SHARE * found.total():
        return None
    return Refusal("language", "the answer is written in another script than the messages")


def select_main_script(text: str, sources: Iterable[str]) -> str:
    """Return the parts of `sources` that are in the main script of `text`, one source per line.

    The characters of Chinese and Japanese are not distinguished. Every other character becomes a space.
    """
    scripts = Counter(map(_script, text))
    del scripts[None]
    main = scripts.most_common(1)[0][0] if scripts else None
    wanted = _CHINESE_AND_JAPANESE if main in _CHINESE_AND_JAPANESE else (main,)
    return "\n".join("".join(char if _script(char) in wanted else " " for char in source) for source in sources)


def script_of(language: str | None) -> str | None:
    """Return the script of a language, by the first part of its tag, or None if it is not known."""
    return "latin" if _IN_LATIN.fullmatch(language or "") else _OF_LANGUAGES.get(language or "")


def count_scripts(text: str) -> Counter[str]:
    """Return the number of letters in `text` by script; Han characters of a Japanese text count as `japanese`."""
    counts = Counter[str]()
    for char, times in Counter(text).items():
        if script := _script(char):
            counts[script] += times
    kana = counts.pop("kana", 0)
    if kana and kana >= _MIN_KANA_SHARE * (kana + counts["han"]):
        counts["japanese"] = kana + counts.pop("han", 0)
    return +counts


@lru_cache(maxsize=16_384)
def _script(char: str) -> str | None:
    if not char.isalpha():
        return None
    first = unicodedata.name(char, "").partition(" ")[0]
    return _NAMES.get(first, first.casefold()) or None
