"""The words of a text and of a query, in every script. Pure.

Chinese, Japanese and Thai have no spaces between words. Korean has, but its words rarely repeat in the same form. So
texts in these scripts are searched by pairs of neighbouring characters: the full text search of PostgreSQL takes a
whole sentence for one word, and groups of three characters do not find words of one or two characters.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from app.layers.text_cache import TextCache
from app.passages.names import find_names, is_name
from app.summarising.frequent import FREQUENT, UNNAMED

MAX_TERMS = 24
"""The most terms of a query. Of a longer query, the longest words count, because long words are rarer."""

HALVED_CHARS = 6
"""Words of at least this many letters are looked up by each half, because one typo leaves one half as it is."""

_SPACELESS = "々\u0e01-\u0e4e\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"  # accents and vowel signs, which \w does not match
_ASCII_WORD = re.compile(r"[a-z0-9]+")
WORD = re.compile(rf"(?P<spaceless>[{_SPACELESS}]+)|(?:[^\W_{_SPACELESS}]|[{_MARKS}])+")
"""A word, or a run of characters of a script without spaces (the group `spaceless`)."""

_IDEOGRAPHS = "々\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IDEOGRAPH = re.compile(rf"[{_IDEOGRAPHS}]")
_LONE_IDEOGRAPH = re.compile(rf"(?<![{_IDEOGRAPHS}])[{_IDEOGRAPHS}](?![{_IDEOGRAPHS}])")
_HIRAGANA = re.compile(r"[\u3040-\u309fー]+")

# The words take about ten times the memory of the text.
_listed = TextCache[Sequence[str]](max_chars=1_000_000)
_counted = TextCache[Mapping[str, int]](max_chars=1_000_000)

_ACCENTS = re.compile("[\u0300-\u036f]+")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe"})  # Unicode does not decompose these

MAX_SHORT_TERMS = 8
"""The most words of one or two letters that are terms of a query, besides MAX_TERMS."""

LONGEST_HIRAGANA = 4
"""A longer run of hiragana without kanji or katakana beside it is no word of a query that has other terms."""


def fold(text: str) -> str:
    """Return a text without the differences of case and of compatibility forms."""
    return unicodedata.normalize("NFKC", text).casefold()


def drop_accents(word: str) -> str:
    """Return a folded word without the accents of its letters, as many people type it: `jose` for `josé`."""
    return word if word.isascii() else _drop_accents(word)


@lru_cache(maxsize=16_384)
def _drop_accents(word: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_LETTERS)
    return unicodedata.normalize("NFC", bare) or word


@lru_cache(maxsize=8_192)
def bare_first(letter: str) -> str:
    """Return the first letter of `drop_accents(word)`, where `letter` is the first letter of the word.

    There are far fewer letters than words, so with its cache this is a cheap check before `drop_accents`.
    """
    return drop_accents(letter)[:1]


def split_words(text: str) -> list[str]:
    """Return the folded words of a text in their order.

    In scripts without spaces, the pairs of neighbouring characters count as words, and so does each Chinese character.
    """
    if text.isascii():  # the same words, in a fifth of the time
        return _ASCII_WORD.findall(text.lower())
    return [word for found in WORD.finditer(fold(text)) for word in _words_of(found)]


def list_words(text: str) -> Sequence[str]:
    """Return what `split_words` returns. The words of texts that were searched recently are cached."""
    return _listed.get(text, lambda: tuple(split_words(text)))


def count_words(text: str) -> Mapping[str, int]:
    """Return how often a text has each word of `split_words` and each name of `find_names`.

    The counts of texts searched recently are cached.
    """
    return _counted.get(text, lambda: Counter([*split_words(text), *find_names(text)]))


Bare = Mapping[str, Sequence[str]]
"""The terms of a query, or their stems, by their bare forms (`list_bare`)."""

_BARE = "~"  # no word has it


def list_bare(terms: Iterable[str], stem: Callable[[str], str] | None) -> Bare:
    """Return the terms, or their stems if `stem` is given, by their bare forms.

    The bare form of a term has no accents. With `stem`, it is the stem of the term without its accents, and has a mark
    before it, because it can differ from the stem of the term: the Spanish stem of `maría` is `mar`, that of `maria` is
    `mari`.
    """
    bare: dict[str, list[str]] = {}
    for term in terms:
        if not is_name(term):
            without = drop_accents(term)
            form, known_as = (_BARE + stem(without), stem(term)) if stem else (without, term)
            bare.setdefault(form, []).append(known_as)
    return bare


def stem_likely(
    words: Collection[str], terms: Iterable[str], stem: Callable[[str], str] | None, bare: Bare | None = None
) -> list[str]:
    """Return the words, with the stem in place of each word that begins like one of `terms`, which are stems.

    Stemming is slow, and the other words cannot match. A word whose stem is none of the terms is replaced by its bare
    form if `bare` has it (`list_bare`): it differs from a term by its accents.
    """
    if stem is None:
        return list(words)
    stems = set(terms)
    beginnings = {term[:2] for term in stems}
    forms = [stem(word) if word[:2] in beginnings else word for word in words]
    return _mark_bare(words, forms, stems, stem, bare) if bare else forms


def _mark_bare(
    words: Collection[str], forms: Sequence[str], stems: Collection[str], stem: Callable[[str], str], bare: Bare
) -> list[str]:
    """Return the forms of words, and the bare forms of those that differ from a term by their accents."""
    beginnings, firsts = {form[1:3] for form in bare}, {form[1:2] for form in bare}
    have_accents = any(form != _BARE + term for form, of_form in bare.items() for term in of_form)
    result = list(forms)
    for at, word in enumerate(words):
        is_possible = (have_accents or not word.isascii()) and bare_first(word[0]) in firsts
        if is_possible and forms[at] not in stems and word not in FREQUENT:
            without = drop_accents(word)
            if without[:2] in beginnings and (form := _BARE + stem(without)) in bare:
                result[at] = form
    return result


def find_terms(query: str, language: str | None = None, names: Iterable[str] = ()) -> list[str]:
    """Return the terms of a query, each once, at most MAX_TERMS: first its words, then frequent words used as names.

    A Chinese character is a term only if no other Chinese character is next to it. Pairs are more precise.

    Args:
        query: The query.
        language: The language of the chat (BCP 47). In other languages than English, no word counts as frequent.
        names: The names of the chat's characters and of its user.

    """
    return _limit(_list_terms(query, language, names))


def _list_terms(text: str, language: str | None, names: Iterable[str]) -> list[str]:
    """Return all terms of a text, each once, as `find_terms` does."""
    found = [term for word in WORD.finditer(fold(text)) for term in _terms_of(word)]
    named = _pairs_of_names(names, text)
    terms = [term for term in dict.fromkeys(found) if term in named or is_topical(term, language)]
    return [*terms, *dict.fromkeys(find_names(text, names))] if has_frequent(language) else terms


def _pairs_of_names(names: Iterable[str], text: str) -> set[str]:
    """Find the hiragana names that occur in a text, and return their pairs of neighbouring characters.

    A name of two characters counts only if there is no other hiragana directly before it. In `行くかな`, `かな` is the
    end of a word and not the name Kana. A longer name counts anywhere, because it usually follows a particle.
    """
    folded = [fold(name) for name in names if not name.isascii()]
    before = {name: r"(?<![\u3040-\u309fー])" if len(name) == 2 else "" for name in folded}
    written = [name for name in folded if _HIRAGANA.fullmatch(name) and re.search(before[name] + name, fold(text))]
    return {name[at : at + 2] for name in written for at in range(len(name) - 1)}


def find_search_terms(query: str, language: str | None = None, names: Iterable[str] = ()) -> list[str]:
    """Return the terms of a query that somebody makes: what `find_terms` returns, short terms, and words in hiragana.

    The short terms are the first MAX_SHORT_TERMS of `find_short_terms`. A word in hiragana (`ねこ`) counts if no kanji
    or katakana is beside it; its pairs of neighbouring characters are terms. In a message, most of such pairs are
    grammar, so `find_terms` leaves them out. A run of more than LONGEST_HIRAGANA characters is mostly grammar, too
    (`はどこにいるの`), so it counts only if the query has no other term. Together with the terms of `find_terms`, the
    pairs are at most MAX_TERMS; the last pairs give way.
    """
    terms = find_terms(query, language, names)
    short = find_short_terms(query)[:MAX_SHORT_TERMS]
    runs = [found for found in WORD.finditer(fold(query)) if len(found[0]) > 1 and _HIRAGANA.fullmatch(found[0])]
    words = [run for run in runs if len(run[0]) <= LONGEST_HIRAGANA]
    counted = runs if not (terms or short or words) else words
    pairs = [pair for pair in dict.fromkeys(pair for run in counted for pair in _terms_of(run)) if pair not in terms]
    return [*terms, *short, *pairs[: MAX_TERMS - len(terms)]]


def find_short_terms(query: str) -> list[str]:
    """Return the words of one or two letters that are names or numbers (`Bo`, `AI`, `7`), each once.

    A word of letters is a name if it has a capital or is the whole query. A word that is frequent in English is no
    name: it can have a capital because it begins a sentence (`It`).
    """
    words = [found[0] for found in WORD.finditer(query) if not found["spaceless"] and len(found[0]) <= 2]
    is_whole = len(words) == 1 and WORD.findall(query) == [""]
    named = [fold(word) for word in words if is_whole or word != word.lower() or not word.isalpha()]
    return [word for word in dict.fromkeys(named) if word not in UNNAMED]


def _limit(terms: list[str]) -> list[str]:
    """Return the MAX_TERMS longest terms in their order; each name counts as longer than any word."""
    if len(terms) <= MAX_TERMS:
        return terms
    longest = set(sorted(terms, key=lambda term: (is_name(term), len(term)), reverse=True)[:MAX_TERMS])
    return [term for term in terms if term in longest]


def find_terms_of_messages(
    newest_first: Iterable[str], *, least: int = 2, language: str | None = None, names: Sequence[str] = ()
) -> list[str]:
    """Return the terms of the newest message, and of earlier ones until there are `least` terms.

    After them come the short terms of these messages, at most MAX_SHORT_TERMS; they count for `least`, too.
    `language` and `names` are those of `find_terms`.
    """
    terms: dict[str, None] = {}
    short: dict[str, None] = {}
    named: set[str] = set()
    for text in newest_first:
        terms |= dict.fromkeys(_list_terms(text, language, names))
        short |= dict.fromkeys(find_short_terms(text))
        named |= _pairs_of_names(names, text)
        if len(terms) - max(len(named) - 1, 0) + len(short) >= least:  # the pairs of names count as one term
            break
    return [*_limit(list(terms)), *list(short)[:MAX_SHORT_TERMS]]


def has_frequent(language: str | None) -> bool:
    """Return whether the list of frequent words applies to a language (BCP 47): to English, and to an unknown one."""
    return language is None or language.partition("-")[0].lower() == "en"


def is_frequent(word: str, language: str | None = None) -> bool:
    """Return whether a word says nothing about the topic."""
    return word in FREQUENT and has_frequent(language)


def is_topical(term: str, language: str | None = None) -> bool:
    """Return whether a text can be found by this term alone."""
    if is_spaceless(term):
        return not _HIRAGANA.fullmatch(term)
    return len(term) > 2 and not is_frequent(term, language)


def list_patterns(terms: Sequence[str]) -> list[str]:
    """Return the substrings to look for in texts, to find those that may contain a term or a similar word.

    They are compared with texts in lower case, decomposed and without accents (`drop_accents`). Some databases change
    only ASCII letters to lower case, so words with other letters are also listed with a capital first letter.
    """
    words = dict.fromkeys(map(drop_accents, terms))
    return list(dict.fromkeys(unicodedata.normalize("NFD", one) for word in words for one in _patterns_of(word)))


def _patterns_of(term: str) -> Iterator[str]:
    if is_name(term):
        term = term.lower()
    if is_spaceless(term):
        pieces = [term]
    elif len(term) <= 2:
        pieces = [f" {term}"]  # without the space, it is in most texts
    elif len(term) < HALVED_CHARS:
        pieces = [term]
    else:
        pieces = [term[: len(term) // 2], term[len(term) // 2 :]]
    yield from pieces
    if not term.isascii():
        yield pieces[0].capitalize()


def _words_of(found: re.Match[str]) -> Iterator[str]:
    word = found[0]
    if not found["spaceless"]:
        yield word
        return
    for at, letter in enumerate(word):
        if _IDEOGRAPH.match(letter) or len(word) == 1:
            yield letter
        if at + 1 < len(word):
            yield word[at : at + 2]


def _terms_of(found: re.Match[str]) -> list[str]:
    word = found[0]
    if not found["spaceless"] or len(word) == 1:
        return [word]
    return [*_LONE_IDEOGRAPH.findall(word), *(word[at : at + 2] for at in range(len(word) - 1))]


def is_spaceless(term: str) -> bool:
    """Return whether a term is a character, or some characters, of a script without spaces."""
    match = None if term.isascii() else WORD.fullmatch(term)
    return match is not None and match["spaceless"] is not None
