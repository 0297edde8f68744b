"""Consolidation without a model: quotes important sentences, and finds facts that are stated beyond doubt. Pure.

Nothing is rephrased: a memory quotes a sentence of a message, or a part of it, with its speaker. The sentences are
chosen as for memos (`app/summarising/extractive.py`), but only among those that are important enough by the rules of
`importance.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.consolidation.certainty import MOST_UNCERTAIN, is_certain, tells_story
from app.consolidation.importance import find_category, rate_sentence
from app.consolidation.learnt import MAX_CONTENT_CHARS, PROMOTION_IMPORTANCE, Learnt, shorten
from app.consolidation.safe_facts import find_facts
from app.consolidation.unreal import is_invented, is_of_one, list_wishes
from app.knowledge.important import LEAST_IMPORTANCE
from app.memories.memory import Category
from app.summarising.extractive import Excerpt, Frequencies, extract_excerpts
from app.summarising.sentences import count_words
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"
"""The version of the rules. All versions begin with `extractive/`, by which `queries.py` finds what rules have read."""

_PART_MESSAGES = 10
_MESSAGE_TOKENS = 7
_MIN_PART_TOKENS = 40  # so that even a part of two messages has room for a sentence
_FACT_WORDS = 6
_NAME_IMPORTANCE = 0.9
_FACT_IMPORTANCE = 0.7


def learn(
    batch: Sequence[Utterance],
    frequencies: Frequencies,
    *,
    given: Mapping[int, float] | None = None,
    count_tokens: Callable[[str], int],
) -> list[Learnt]:
    """Return the facts and the memories in `batch`: the facts first, both in the order of the messages.

    Only sentences with an importance above 0.6 become memories. The batch is divided into parts of ten messages; the
    last part can be shorter. At most three sentences of a part are quoted. Their quotations together have at most seven
    tokens for each message of the part, or 40 if that is more. A fact that is stated twice is returned twice.

    Args:
        batch: The eligible messages of a range.
        frequencies: The frequencies of the chat up to and including the batch.
        given: The importance that callers gave to messages, by seq. It replaces the importance by the rules.
        count_tokens: Must accept any text without lone surrogates.

    """
    parts = [batch[start : start + _PART_MESSAGES] for start in range(0, len(batch), _PART_MESSAGES)]
    memories = [
        memory
        for part in parts
        for memory in _quote(
            part, frequencies, given or {}, max(_MIN_PART_TOKENS, _MESSAGE_TOKENS * len(part)), count_tokens
        )
    ]
    return [*_list_facts(batch), *memories]


def promote(
    messages: Sequence[Utterance],
    frequencies: Frequencies,
    *,
    given: Mapping[int, float] | None = None,
    count_tokens: Callable[[str], int],
) -> list[Learnt]:
    """Return a memory of each of these messages that has an importance above 0.6, in order.

    The memory quotes one sentence: up to three sentences with at most 40 tokens together are chosen as in `learn`, and
    the first of them is quoted. If there is none, a sentence that only states a fact is quoted. A message has no memory
    if each of its sentences says nothing or is too long. The other arguments are those of `learn`.
    """

    def quote(said: Utterance, *, with_facts: bool = False) -> list[Learnt]:
        return _quote([said], frequencies, given or {}, _MIN_PART_TOKENS, count_tokens, with_facts=with_facts)[:1]

    return [memory for said in messages for memory in quote(said) or quote(said, with_facts=True)]


def _quote(
    part: Sequence[Utterance],
    frequencies: Frequencies,
    given: Mapping[int, float],
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    *,
    with_facts: bool = False,
) -> list[Learnt]:
    """Return the memories that quote `part`; those of sentences that only state a fact, only `with_facts`."""
    stories = {said.seq for said in part if tells_story(said.text) or is_invented(said.text)}
    wishes = {said.seq: list_wishes(said.text) for said in part}

    def rate(excerpt: Excerpt) -> float:
        seq = excerpt.utterance.seq
        is_real = seq not in stories and not is_of_one(excerpt.said, wishes[seq])
        return _rate(excerpt, is_real=is_real) if given.get(seq) is None else given[seq]

    excerpts = extract_excerpts(
        part,
        frequencies,
        budget_tokens=budget_tokens,
        count_tokens=count_tokens,
        is_eligible=lambda excerpt: rate(excerpt) > PROMOTION_IMPORTANCE and (with_facts or not _is_fact(excerpt)),
    )
    return [
        Learnt(
            "memory",
            None,
            shorten(excerpt.line, MAX_CONTENT_CHARS),
            (excerpt.utterance.seq,),
            find_category(excerpt.said),
            rate(excerpt),
        )
        for excerpt in excerpts
    ]


def _rate(excerpt: Excerpt, *, is_real: bool) -> float:
    """Return the importance by the rules.

    The core block `facts` contains a quotation only if its importance is LEAST_IMPORTANCE or more. The rules give this
    importance only to sentences of the user or the assistant that are certain (`is_certain`). With `is_real`, the
    sentence expresses no wish, and its message tells no story and speaks of no dream or lie.
    """
    rating = rate_sentence(excerpt.said, excerpt.kind, excerpt.names)
    speaks = excerpt.utterance.role in ("user", "assistant")
    if not is_real or not speaks or not is_certain(excerpt.said, excerpt.kind):
        return min(rating, MOST_UNCERTAIN)
    return max(rating, LEAST_IMPORTANCE) if rating > PROMOTION_IMPORTANCE else rating


def _is_fact(excerpt: Excerpt) -> bool:
    """Whether the excerpt says little more than a fact that `find_facts` reads."""
    is_short = count_words(excerpt.said) <= _FACT_WORDS
    return is_short and any(True for _ in find_facts(replace(excerpt.utterance, text=excerpt.said)))


def _list_facts(batch: Sequence[Utterance]) -> Iterator[Learnt]:
    for said in batch:
        for key, value, is_firm in find_facts(said):
            category: Category = "preference" if key.startswith(("favourite", "favorite")) else "personal"
            importance = _NAME_IMPORTANCE if key == "name" else _FACT_IMPORTANCE
            yield Learnt("fact", key, value, (said.seq,), category, importance, is_firm=is_firm)
