"""Formats what was learnt: facts and memories. Pure.

The functions take the items as the API returns them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.demo.words import BULLET, count, fill, heading, part

Listed = Mapping[str, Any]

_AUTHORS = {
    "model": "learnt by a model",
    "extractive": "quoted, no model",
    "tool": "noted by the character",
    "person": "written by a person",
}

MOST_SHOWN = 20
"""How many memories are shown; the others are only counted."""


def word_learnt(
    facts: Sequence[Listed], memories: Sequence[Listed], archived: Sequence[Listed], *, has_model: bool = False
) -> Iterator[str]:
    """Yield the lines of facts and memories, the strongest memories first, with an example of the `archived` ones.

    `has_model` is whether a model is configured. If one is, a text was quoted for another reason than a missing model:
    the model's answers were refused, or the message was too important to be left out.
    """
    authors = _AUTHORS | ({"extractive": "quoted, not written by the model"} if has_model else {})
    known = f"{count(len(facts), 'fact')} and {count(len(memories), 'memory', 'memories')}"
    yield heading(f"What was learnt: {known}")
    if facts:
        yield part("facts")
        for fact in facts:
            yield fill(f"{fact['key']}: {fact['value']} · {_word_origin(fact, authors)}", 6, BULLET)
    if memories:
        yield part("memories, the strongest first")
        for memory in memories[:MOST_SHOWN]:
            category = f"({memory['category']}) " if memory["category"] else ""
            yield fill(
                f"{memory['score']:.2f}  {category}{memory['content']} · {_word_origin(memory, authors)}", 6, BULLET
            )
    if (more := len(memories) - MOST_SHOWN) > 0:
        yield "\n" + fill(f"{count(more, 'weaker one')} not shown.", 2)
    if archived:
        yield "\n" + fill(f"{count(len(archived), 'memory', 'memories')} more in the archive, for example:", 2)
        one = archived[-1]
        was = f"said on {one['said_at'][:10]}, from {one['importance']:.2f} to {one['score']:.2f}"
        yield fill(f"{one['content']} · {was}", 6, BULLET)


def _word_origin(one: Listed, authors: Mapping[str, str]) -> str:
    ids = [source.partition(":")[2] for source in one["sources"]]
    said = f"message {', '.join(ids)}" if len(ids) == 1 else f"messages {', '.join(ids)}" if ids else "no message"
    return f"{said} · {authors[one['origin']]}"
