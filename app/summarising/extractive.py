"""The summariser without a model: it chooses sentences of a batch of messages and quotes them. Pure.

The weight of a term is its inverse document frequency (Spärck Jones, 1972) in the chat so far. It is higher if
several messages of the batch contain the term, and if the term is a name or a number. The weight of a sentence
is the sum of the weights of its terms. It is higher in a long message, in the first person, and with words that
promise, name, give or reveal something.

Sentences are chosen one at a time, always the one that adds most weight per token; a term that is quoted already
adds nothing. This is maximal marginal relevance (Carbonell and Goldstein, 1998) with repetition counted term by term.

Nothing is rephrased, so the result contains no claim that is not in the messages. A shortened sentence is marked
with `…`, unless only a leading filler such as `Yeah,` was dropped.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations, dropwhile

from app.summarising.sentences import (
    Kind,
    Sentence,
    clean_line,
    count_words,
    ends_sentence,
    find_first_words,
    find_terms,
    is_katakana,
    is_number,
    split_sentences,
)
from app.summarising.transcript import Utterance

MAX_HIGHLIGHTS = 3

_HEAD_CHARS, _TAIL_CHARS = 6_000, 2_000  # the parts of an overlong message that are read
_SENTENCES = 60  # of a batch, only this many sentences with the greatest weights are considered
_MIN_WORDS = 6  # a shorter quote is a scrap, chosen only if the batch has nothing else
_MIN_TERMS = 2  # a quote with a single term is only an exclamation
_CRY_WORDS = 2  # the maximum number of words of an exclamation
_MIN_GAIN = 1.5  # line n must add at least n times this weight; a rare term has the weight 1
_MIN_NEW_SHARE = 0.5  # if a smaller share of a line's weight is new, the line is a repetition
_NAME_CHARS = 40
_ROOT_CHARS = 5  # terms that begin alike count as one: promise, promised
_CLAUSE_MARKS = " ,;:–—-、，；：("
_ANNOUNCING_MARKS = (":", "：")
_QUOTED = {Kind.STATEMENT: "“{}”", Kind.QUESTION: "“{}”", Kind.ACTION: "*{}*", Kind.NOTE: "{}"}
_QUOTE_LINE = re.compile(rf".{{0,{_NAME_CHARS}}}: (?:“.*”|\*.*\*|[\[…].*)")  # a note is in square brackets

_PRIOR_DOCUMENTS = 8  # added to the number of utterances, so that a chat's first messages have frequencies too
# These factors were tuned on five conversations of the benchmark LoCoMo and the demo's turning points, and validated on
# five others of LoCoMo with `python -m bench.extractive`. Small changes of a factor hardly change the results.
_NAME_FACTOR = 4.0
_NUMBER_FACTOR = 1.5
_KIND_FACTOR = {Kind.STATEMENT: 1.0, Kind.QUESTION: 0.5, Kind.ACTION: 0.5, Kind.NOTE: 0.5}
_FIRST_PERSON_FACTOR = 2.0
_SIGNAL_FACTOR = 2.0
_LENGTH_EXPONENT = 0.25  # of a message's length relative to the longest of the batch: long messages say more
_CUT_FRONT_FACTOR = 0.5
_CUT_BACK_FACTOR = 0.7
_LINE_TOKENS = 15  # added to the tokens of each line, so that short lines dense in names do not win

# Courtesies and pronouns, which carry little information. A new chat has too few messages for their frequencies to
# show that. English only; in other languages only the frequencies count.
_SMALL_TALK = frozenset(
    find_terms("""
        a ah am and anyway are aw aww awesome be been but bye can care congrats cool course day dear
        definitely do doing fine for glad good goodbye great haha has have hello hey hi how i in is
        it its later let ll lol luck m me morning my nice night no of oh ok okay omg on re really
        right s see so sorry soon sounds sure sweet t take talk thank thanks the there they this to
        too totally up ve very we welcome well what will with wow yeah yep yes you your yup
    """)
)
# Words that promise, name, give or reveal something, and those of the first person. They are English only, so they only
# raise weights; in other languages, names, frequencies and lengths decide.
_SIGNAL_WORDS = frozenset(
    find_terms("""
        promise promised swear trust trusted secret sorry forgive forgave marry married brother sister mother father
        name named called birthday born died dead never
        gave give given gift present lost found kept
        truth lie lied told decided agreed offered offering afraid ashamed
    """)
)
_FIRST_PERSON = frozenset(("I", "me", "Me", "my", "My", "mine", "Mine"))  # as spelled: `i` is the Polish "and"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The term frequencies of a chat, counted once from its history and used for each of its batches.

    Attributes:
        documents: The number of utterances.
        containing: Case-folded term → the number of utterances that contain it.
        spellings: Word as spelled → how often it occurs, except as a first word, where a capital means nothing.

    """

    documents: int
    containing: Counter[str]
    spellings: Counter[str]

    @classmethod
    def of(cls, history: Iterable[Utterance]) -> "Frequencies":
        """Return the frequencies in `history`, from at most 8,000 characters of each utterance."""
        documents, containing, spellings = 0, Counter[str](), Counter[str]()
        for utterance in history:
            documents += 1
            text = _readable(utterance.text)
            terms = find_terms(text)
            containing.update(set(map(str.casefold, terms)))
            spellings.update(terms)
            spellings.subtract(find_first_words(text))
        return cls(documents, containing, spellings)

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a case-folded term: 1 if it occurs once, near 0 if everywhere."""
        documents = self.documents + _PRIOR_DOCUMENTS
        return 1 - math.log(max(1, self.containing[term])) / math.log(documents)

    def is_name(self, word: str) -> bool:
        """Whether `word`, as spelled, is a name: within sentences it is capitalised more often than not."""
        return word[0].isupper() and len(word) > 1 and self.spellings[word] > self.spellings[word.lower()]


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of the batch; `names` counts its names and numbers, `weights` has the weight of each `_root` in it."""

    text: str
    words: int
    names: int
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence of the batch without its leading fillers."""

    place: tuple[int, int]  # the utterance's and the sentence's number
    name: str
    kind: Kind
    clauses: tuple[_Clause, ...]

    def weight(self) -> float:
        """Return the weight of the whole sentence."""
        return sum(sum(clause.weights.values()) for clause in self.clauses)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quotation and what it is based on.

    Attributes:
        utterance: The message that is quoted.
        line: `Name: “quoted sentence”`.
        said: The quoted words, with `…` where they were shortened.
        kind: The kind of the sentence.
        tokens: The number of tokens of `line`.
        names: The number of its names and numbers.

    """

    utterance: Utterance
    line: str
    said: str
    kind: Kind
    tokens: int
    names: int


@dataclass(frozen=True, slots=True)
class _Quote:
    """A run of a candidate's clauses, formatted as a line."""

    place: tuple[int, int]
    is_scrap: bool
    weights: dict[str, float]
    excerpt: Excerpt

    def gain(self, covered: set[str]) -> float:
        """Return the weight of its roots that are not in `covered`."""
        return sum(weight for root, weight in self.weights.items() if root not in covered)

    def repeats(self, covered: set[str]) -> bool:
        """Whether too much of its weight is in `covered` already."""
        return self.gain(covered) < _MIN_NEW_SHARE * sum(self.weights.values())


def extract(
    batch: Sequence[Utterance],
    history: Sequence[Utterance],
    *,
    budget_tokens: int = 60,
    count_tokens: Callable[[str], int],
) -> list[str]:
    """Return the highlights of `batch` like `extract_with`; `history` is the chat up to and including the batch."""
    frequencies = Frequencies.of(history)
    return extract_with(batch, frequencies, budget_tokens=budget_tokens, count_tokens=count_tokens)


def is_quote(line: str) -> bool:
    """Whether `line` has the form of the lines that `extract` returns, which is unlikely in prose."""
    return _QUOTE_LINE.fullmatch(line) is not None


def extract_with(
    batch: Sequence[Utterance],
    frequencies: Frequencies,
    *,
    budget_tokens: int = 60,
    count_tokens: Callable[[str], int],
) -> list[str]:
    """Return the highlights of `batch` in its order, at most 3, each a line `Name: “quoted sentence”`.

    Their tokens add up to at most `budget_tokens`. Small talk has no highlights. An action is in asterisks instead
    of quotation marks; a note keeps its square brackets.

    Args:
        batch: Only the first 6,000 and the last 2,000 characters of an overlong message are read.
        frequencies: The frequencies of the chat up to and including the batch.
        budget_tokens: For all highlights together.
        count_tokens: Must accept any text without lone surrogates.

    """
    excerpts = extract_excerpts(batch, frequencies, budget_tokens=budget_tokens, count_tokens=count_tokens)
    return [excerpt.line for excerpt in excerpts]


def extract_excerpts(
    batch: Sequence[Utterance],
    frequencies: Frequencies,
    *,
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    is_eligible: Callable[[Excerpt], bool] = lambda _: True,
) -> list[Excerpt]:
    """Return the highlights of `batch` like `extract_with`, each with the message that it quotes.

    Only excerpts that are `is_eligible` are considered.
    """
    quotes = [
        quote
        for candidate in _candidates(batch, frequencies)
        for quote in _quotes(candidate, batch[candidate.place[0]], count_tokens)
        if quote.excerpt.tokens <= budget_tokens and is_eligible(quote.excerpt)
    ]
    statements = [quote for quote in quotes if not quote.is_scrap]
    chosen = _choose(statements, budget_tokens) or _choose(quotes, budget_tokens)
    return [quote.excerpt for quote in sorted(chosen, key=lambda quote: quote.place)]


def _choose(quotes: list[_Quote], budget_tokens: int) -> list[_Quote]:
    """Return the quotes that add most weight per token, at most one of each sentence, best first."""
    chosen: list[_Quote] = []
    covered: set[str] = set()
    while quotes and len(chosen) < MAX_HIGHLIGHTS:
        best = max(quotes, key=lambda quote: quote.gain(covered) / (quote.excerpt.tokens + _LINE_TOKENS))
        if best.gain(covered) < _MIN_GAIN * (1 + len(chosen)):
            break
        chosen.append(best)
        covered.update(best.weights)
        budget_tokens -= best.excerpt.tokens
        quotes = [
            quote
            for quote in quotes
            if quote.place != best.place and quote.excerpt.tokens <= budget_tokens and not quote.repeats(covered)
        ]
    return chosen


def _candidates(batch: Sequence[Utterance], frequencies: Frequencies) -> list[_Candidate]:
    """Return the weightiest sentences of `batch`, heaviest first."""
    names = [clean_line(utterance.name)[:_NAME_CHARS] for utterance in batch]
    texts = [_readable(utterance.text) for utterance in batch]
    scales = _Scales(names, texts, frequencies)
    candidates = [
        _Candidate((at, nth), name, sentence.kind, scales.weigh(sentence, len(text)))
        for at, (name, text) in enumerate(zip(names, texts, strict=True))
        for nth, sentence in enumerate(split_sentences(text, _MIN_WORDS))
    ]
    return nlargest(_SENTENCES, candidates, key=_Candidate.weight)


class _Scales:
    """Computes the weights of words and sentences in one batch."""

    def __init__(self, names: Sequence[str], texts: Sequence[str], frequencies: Frequencies) -> None:
        self._frequencies = frequencies
        self._speakers = frozenset(find_terms(" ".join(names).casefold()))
        short_names = (name[:chars] for name in self._speakers for chars in range(3, len(name)))
        self._silent = _SMALL_TALK.union(self._speakers, short_names)
        self._tellers = Counter(root for text in texts for root in set(map(_root, find_terms(text))))
        self._longest_chars = max(map(len, texts), default=0)

    def weigh(self, sentence: Sentence, message_chars: int) -> tuple[_Clause, ...]:
        """Return the weighed clauses of `sentence`, without leading fillers such as `Yeah,` or a speaker's name."""
        clauses = tuple(dropwhile(self._is_filler, sentence.clauses))
        share = message_chars / self._longest_chars
        factor = _KIND_FACTOR[sentence.kind] * share**_LENGTH_EXPONENT * self._emphasis("".join(clauses))
        return tuple(self._weigh_clause(clause, factor) for clause in clauses)

    def _is_filler(self, clause: str) -> bool:
        return self._silent.issuperset(find_terms(clause.casefold()))

    def _is_call(self, clause: str) -> bool:
        """Whether `clause` is an address or an exclamation, such as `Nell` in `Thank you, Nell.`, or `Wow!`."""
        is_cry = clause.rstrip().endswith(("!", "！")) and count_words(clause) <= _CRY_WORDS
        return is_cry or self._is_filler(clause)

    def _emphasis(self, sentence: str) -> float:
        """Return the factor for the first person and for `_SIGNAL_WORDS`, which count less if they are frequent."""
        words = set(find_terms(sentence))
        signal = max(map(self._frequencies.idf, _SIGNAL_WORDS.intersection(map(str.casefold, words))), default=0.0)
        first_person = _FIRST_PERSON_FACTOR if words & _FIRST_PERSON else 1.0
        return first_person * (1 + (_SIGNAL_FACTOR - 1) * signal)

    def _weigh_clause(self, clause: str, factor: float) -> _Clause:
        words = find_terms(clause)
        factors = self._word_factors(words, is_shouted=clause.isupper())
        weights: dict[str, float] = {}
        if not self._is_call(clause):
            for word, own in zip(words, factors, strict=True):
                if (term := word.casefold()) not in _SMALL_TALK:
                    root = _root(word)
                    again = 1 + math.log(max(1, self._tellers[root]))
                    weights[root] = self._frequencies.idf(term) * own * again * factor
        return _Clause(clause, count_words(clause), sum(own > 1 for own in factors), weights)

    def _word_factors(self, words: Sequence[str], *, is_shouted: bool) -> list[float]:
        """Return the factor of each of `words`; a name next to a number (`6 September`) counts as part of a date."""
        numbers = [is_number(word) for word in words]
        names = [not is_shouted and self._is_name(word) for word in words]
        stamps = [any(numbers[max(0, at - 1) : at + 2]) for at in range(len(words))]
        return [
            (_NUMBER_FACTOR if stamp else _NAME_FACTOR) if number or name else 1.0
            for number, name, stamp in zip(numbers, names, stamps, strict=True)
        ]

    def _is_name(self, word: str) -> bool:
        is_speaker = word.casefold() in self._speakers and not word.islower()
        return is_speaker or is_katakana(word) or self._frequencies.is_name(word)


def _quotes(candidate: _Candidate, utterance: Utterance, count_tokens: Callable[[str], int]) -> Iterator[_Quote]:
    """Yield the runs of the candidate's clauses as quotes, with `…` where a run begins or ends within a sentence.

    Runs with too few terms are left out. So are runs that end with a colon, if the clauses after the colon are cut off.
    """
    end = len(candidate.clauses)
    for first, last in combinations(range(end + 1), 2):
        run = candidate.clauses[first:last]
        said, factor = "".join(clause.text for clause in run).strip(), 1.0
        if first and not ends_sentence(candidate.clauses[first - 1].text):
            said, factor = f"…{said}", factor * _CUT_FRONT_FACTOR
        if last < end and not ends_sentence(said):
            if said.endswith(_ANNOUNCING_MARKS):
                continue
            said, factor = f"{said.rstrip(_CLAUSE_MARKS)}…", factor * _CUT_BACK_FACTOR
        weights = {root: weight * factor for clause in run for root, weight in clause.weights.items()}
        if len(weights) >= _MIN_TERMS:
            words, names = sum(clause.words for clause in run), sum(clause.names for clause in run)
            line = f"{candidate.name}: {_QUOTED[candidate.kind].format(said)}"
            is_scrap = words < _MIN_WORDS or 2 * names >= words
            excerpt = Excerpt(utterance, line, said, candidate.kind, count_tokens(line), names)
            yield _Quote(candidate.place, is_scrap, weights, excerpt)


def _root(word: str) -> str:
    """Return the part of `word` that it shares with its inflections: `promise`, `Promised`."""
    return word.casefold() if is_number(word) else word.casefold()[:_ROOT_CHARS]


def _readable(text: str) -> str:
    """Return `text`, or the head and the tail of an overlong one."""
    if len(text) <= _HEAD_CHARS + _TAIL_CHARS:
        return text
    return f"{text[:_HEAD_CHARS]}…\n…{text[-_TAIL_CHARS:]}"
