"""Chooses which search results a context contains, within a budget. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from app.passages.words import list_words

HEADING = "## Recalled"

MAX_MISFITS = 12
"""After this many results that did not fit, no more are tried: to count the tokens of each takes time."""

LEAST_SCORE = 0.15
"""A result that scores less than this share of the best is not recalled.

On the questions of the benchmark LoCoMo, with 2,000 tokens, 0.15 saves a sixth of the tokens and loses 0.7 percentage
points of the evidence; 0.35 would lose 8 (`bench/RESULTS.md`).
"""

LEAST_MEANING = 0.35
"""A layer's text that has no word of the query is recalled only if its meaning adds at least this much to its score.

This is 70 percent of the 0.5 that meaning can add. Many unrelated memories would pass LEAST_SCORE, because what the
meaning adds is relative to the most similar text.
"""

LEAST_RELATEDNESS = 0.25
"""A layer's text that has no word of the query is not recalled if its relatedness is less than this.

Relatedness is 0 for unrelated texts and 1 for the same text (`embeddings.scale`). LEAST_MEANING is not enough, because
the meaning of the most similar text always adds 0.5, however little that text has to do with the query. With MiniLM,
the memory that answers a question of LoCoMo has 0.26 or more for 99 of 100 questions, and 0.70 in the median. For 20
greetings and other short messages, such as "good night", the most similar one of 240 memories has 0.14 in the median,
and at most 0.25.
"""

_QUOTING = {"memory", "message"}


class Hit(NamedTuple):
    """A search result.

    Attributes:
        source: Its source: `memory:<id>`, `message:<id>`.
        text: Its text; for a message, with the speaker.
        category: Its category; None if it has none.
        first_seq: The first message that it is about; 0 for a text about no message of the line.
        last_seq: The last message that it is about. For a text about no message, the message that it follows, or 0.
        score: How well it answers the query.
        parts: What the score is made of.
        relatedness: How similar its meaning is to that of the query, from 0 for unrelated texts to 1; None if unknown.

    """

    source: str
    text: str
    category: str | None
    first_seq: int
    last_seq: int
    score: float
    parts: Mapping[str, float]
    relatedness: float | None = None

    @property
    def kind(self) -> str:
        """The kind: `memory`, `message`, `memo`."""
        return self.source.partition(":")[0]

    @property
    def id(self) -> str:
        """The id, without the kind."""
        return self.source.partition(":")[2]

    @property
    def is_vague(self) -> bool:
        """Whether it is a layer's text that has no word of the query, and a meaning that is only a little similar."""
        if self.kind == "message" or self.parts["text"]:
            return False
        is_unrelated = self.relatedness is not None and self.relatedness < LEAST_RELATEDNESS
        return is_unrelated or self.parts.get("vector", 0.0) < LEAST_MEANING

    @property
    def line(self) -> str:
        """The result on one line."""
        return f"- [{self.category or self.kind}] {' '.join(self.text.split())}"


def choose(
    hits: Sequence[Hit],
    *,
    left_out: Collection[str],
    shown: Sequence[str],
    limit_tokens: int,
    count: Callable[[str], int],
    least_score: float = LEAST_SCORE,
) -> list[Hit]:
    """Return the best results whose lines fit into the limit together with the heading, oldest first.

    If a result does not fit, the next ones are tried, until MAX_MISFITS results did not fit. These are left out:

    - a result that scores far below the best one, even if the best one is left out itself;
    - a layer's text that has no word of the query and no very similar meaning (`is_vague`);
    - a result whose whole sequence of words occurs in a better result that is chosen, in one of `left_out` or in one of
      `shown`;
    - a result that is the same as a better one that is chosen, or as one of `left_out` (`is_same`).

    Args:
        hits: The results, best first.
        left_out: The sources that must not be chosen.
        shown: Texts that the context contains anyway.
        limit_tokens: The limit for the whole text (`word`).
        count: Returns the tokens of a text.
        least_score: The least share of the best score that a result must have.

    """
    passed = [hit for hit in hits if hit.source in left_out]  # the chosen results are added below
    known = [_bounded(text) for text in (*shown, *(hit.text for hit in passed))]
    least = least_score * max((hit.score for hit in hits), default=0.0)
    chosen: list[Hit] = []
    tokens = count(HEADING) + 1
    misfits = 0
    for hit in hits:
        if misfits == MAX_MISFITS:
            break
        if hit.score < least or hit.is_vague:
            continue
        words = _bounded(hit.text)
        if hit.source in left_out or any(words in text for text in known) or any(is_same(hit, one) for one in passed):
            continue
        needed = count(hit.line) + 1  # with the line break
        if tokens + needed > limit_tokens:
            misfits += 1
            continue
        tokens += needed
        chosen.append(hit)
        passed.append(hit)
        known.append(words)
    return sort_by_age(chosen)


def is_same(one: Hit, other: Hit) -> bool:
    """Return whether one result is a message, and the other a memory that was learnt from it and quotes it.

    Without a model, a memory is a sentence of a message, so both results say the same.
    """
    if one.last_seq < other.first_seq or other.last_seq < one.first_seq or {one.kind, other.kind} != _QUOTING:
        return False
    memory, message = (one, other) if one.kind == "memory" else (other, one)
    quoted = _bounded(memory.text.partition(": ")[2] or memory.text)  # the speaker of a message is at its beginning
    return bool(quoted.strip()) and quoted in _bounded(message.text)


def sort_by_age(hits: Sequence[Hit]) -> list[Hit]:
    """Return results with the newest last. Results that are about no message, and follow none, come first."""
    return sorted(hits, key=lambda hit: (hit.last_seq, hit.first_seq or hit.last_seq, -hit.score, hit.source))


def word(hits: Sequence[Hit]) -> str:
    """Return the text of the segment."""
    return "\n".join((HEADING, "", *[hit.line for hit in hits]))


def _bounded(text: str) -> str:
    """Return the words of a text, each between spaces, so that a word is not found within another."""
    return f" {' '.join(list_words(text))} "
