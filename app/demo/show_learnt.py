"""Formats what was learnt: facts and memories, and the core blocks. Pure.

The functions take the items as the API returns them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.demo.words import BULLET, count, fill, fill_lines, heading, part
from app.memories.decay import HALF_LIFE_DAYS

Listed = Mapping[str, Any]

_AUTHORS = {
    "model": "learnt by a model",
    "extractive": "quoted, no model",
    "tool": "noted by the character",
    "person": "written by a person",
}
_BLOCK_AUTHORS = {
    "model": "written by a model",
    "extractive": "the most important memories",
    "tool": "written by the character",
    "person": "written by a person",
}

MOST_SHOWN = 20
"""How many memories are shown; the others are only counted."""

MOST_FORMER = 3
"""How many former values of a fact are shown, the newest ones."""


def word_learnt(
    facts: Sequence[Listed],
    memories: Sequence[Listed],
    archived: Sequence[Listed],
    *,
    values: Mapping[str, Sequence[Listed]] | None = None,
    half_life_days: float = HALF_LIFE_DAYS,
    has_model: bool = False,
) -> Iterator[str]:
    """Yield the lines of facts and memories, the strongest memories first, with an example of the `archived` ones.

    `values` are the values that the key of each fact has and had, newest first, by the id of the fact, if known. In
    `half_life_days`, a memory loses half of its strength. `has_model` is whether a model is configured. If one is, a
    text was quoted for another reason than a missing model: the model's answers were refused, or the message was too
    important to be left out.
    """
    authors = _AUTHORS | ({"extractive": "quoted, not written by the model"} if has_model else {})
    known = f"{count(len(facts), 'fact')} and {count(len(memories), 'memory', 'memories')}"
    yield heading(f"What was learnt: {known}")
    if facts:
        yield part("facts")
        for fact in facts:
            yield fill(f"{fact['key']}: {fact['value']} · {_word_origin(fact, authors)}", 6, BULLET)
            yield from _word_former(fact, (values or {}).get(fact["id"], ()))
    if memories:
        yield part(f"memories, the strongest first: strength is importance, halved every {half_life_days:g} days")
        for memory in memories[:MOST_SHOWN]:
            category = f"({memory['category']}) " if memory["category"] else ""
            origin = f"{_word_origin(memory, authors)} · importance {memory['importance']:.2f}"
            yield fill(f"{memory['score']:.2f}  {category}{memory['content']} · {origin}", 6, BULLET)
    if (more := len(memories) - MOST_SHOWN) > 0:
        yield "\n" + fill(f"{count(more, 'weaker one')} not shown.", 2)
    if archived:
        yield "\n" + fill(f"{count(len(archived), 'memory', 'memories')} more in the archive, for example:", 2)
        one = archived[-1]
        was = f"said on {one['said_at'][:10]}, from {one['importance']:.2f} to {one['score']:.2f}"
        yield fill(f"{one['content']} · {was}", 6, BULLET)


def word_blocks(blocks: Sequence[Listed]) -> Iterator[str]:
    """Yield the lines of the core blocks that have a text."""
    written = [block for block in blocks if block["text"].strip()]
    if not written:
        return
    yield heading(f"The core memory: {count(len(written), 'block')}, always in the prompt")
    for block in written:
        yield part(f"{block['label']}: {_BLOCK_AUTHORS[block['origin']]}") + "\n"
        yield from fill_lines(block["text"], 6)


def _word_former(fact: Listed, values: Sequence[Listed]) -> Iterator[str]:
    """Yield a line for each of the newest former values of a fact in its scope."""
    former = [one for one in values if one["id"] != fact["id"] and one["scope"] == fact["scope"]]
    for one in former[:MOST_FORMER]:
        yield fill(f"before: {'(deleted)' if one['value'] is None else one['value']}", 10)
    if (more := len(former) - MOST_FORMER) > 0:
        yield fill(f"and {count(more, 'older value')}", 10)


def _word_origin(one: Listed, authors: Mapping[str, str]) -> str:
    ids = [source.partition(":")[2] for source in one["sources"]]
    said = f"message {', '.join(ids)}" if len(ids) == 1 else f"messages {', '.join(ids)}" if ids else "no message"
    return f"{said} · {authors[one['origin']]}"
