"""The lines of the block `facts` that are made from the most important memories, one line each. Pure.

The block begins with these lines, or they follow the whole text that a tool or the service wrote. A block whose whole
text a person wrote has no such lines.
"""

from collections.abc import Sequence

from app.knowledge.important import Important, sort_by_age
from app.knowledge.known import Known

LABEL = "facts"
"""The label of the block that has these lines."""

MAX_WORDS = 200
"""The maximum number of words in these lines."""

MAX_BULLET_CHARS = 1_500
"""The maximum number of characters in these lines. A whole block can be longer, so it has room for other text."""


def choose(memories: Sequence[Important]) -> Sequence[Important]:
    """Return the memories that fit into MAX_WORDS and MAX_BULLET_CHARS; `memories` has the most important first.

    A memory that is too long by itself is skipped. The first other memory that does not fit ends the choice.
    """
    chosen: list[Important] = []
    words, chars = 0, -1
    for one in memories:
        own_words, own_chars = len(one.content.split()), len(_bullet(one))
        if own_words > MAX_WORDS or own_chars > MAX_BULLET_CHARS:
            continue
        words, chars = words + own_words, chars + 1 + own_chars
        if words > MAX_WORDS or chars > MAX_BULLET_CHARS:
            break
        chosen.append(one)
    return chosen


def word(memories: Sequence[Important]) -> str:
    """Return a line for each memory, the oldest first, so that a new one is added at the end."""
    return "\n".join([_bullet(one) for one in sort_by_age(memories)])


def make_operation(memories: Sequence[Important], operation: str) -> Known:
    """Return the operation that writes the text of some memories, at least one, into the block. It is not stored.

    `operation` is `replace` if the block begins with the text, and `append` if the text follows another one. The
    returned operation has the nearest scope of any of these memories, and the id and the time of the newest memory.
    """
    nearest = min(memories, key=lambda one: one.rank)
    newest = sort_by_age(memories)[-1]
    return Known(
        nearest.rank,
        nearest.character,
        LABEL,
        newest.statement_id,
        word(memories),
        0,
        "extractive",
        False,
        newest.learnt_us,
        operation,
    )


def _bullet(memory: Important) -> str:
    return f"- {' '.join(memory.content.split())}"
