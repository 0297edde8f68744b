"""Formats what recall finds: for the next call, and for a question. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.demo.words import WIDTH, count, fill, heading

MOST_SHOWN = 3
"""How many results of a question are shown, the best ones."""

_MOST_UNASKED = 5
"""How many results for the next call are shown, the best ones."""

_UNASKED_CHARS = 2 * WIDTH - 32
"""The maximum length of a result for the next call: about two lines."""

_PARTS = {"vector": "meaning", "text": "words", "neighbours": "neighbours"}

_BY_WORDS = (
    "None of these was found by its meaning: only the words of the question were compared. With the package of "
    "requirements-local-embeddings.lock, the demo also compares the meaning."
)


def word_recalled(question: str, context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the best results, each with its score and what meaning, words and neighbours add to it.

    Parts of a score that are less than 0.005 are left out. `context` is a context with recall and the question as its
    query, as the service returns it.
    """
    yield heading(f"A flashback: what recall finds for “{question}”")
    found = _list_found(context)
    if not found:
        yield "\n" + fill("Nothing.", 2)
    for one, text in found[:MOST_SHOWN]:
        yield f"\n  {_word_found(one)}"
        yield fill(text, 8)
    if not any("vector" in one["parts"] for one in context["recalled"]):
        yield "\n" + fill(_BY_WORDS, 2)


def word_unasked(context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of what recall adds to the next call, the best results first, each with its score.

    `context` is a context without a query, as the service returns it, in which recall is on.
    """
    found = _list_found(context)
    yield heading(f"What recall adds to the next call: {count(len(found), 'text')} that the newest messages bring back")
    for one, text in found[:_MOST_UNASKED]:
        yield f"\n  {_word_found(one)}"
        yield fill(textwrap.shorten(text, _UNASKED_CHARS, placeholder=" …"), 8)
    if (more := len(found) - _MOST_UNASKED) > 0:
        yield "\n" + fill(f"{count(more, 'weaker one')} not shown.", 2)


def _list_found(context: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the results in a context and their texts, the best first."""
    texts = [segment["text"] for segment in context["segments"] if segment["name"] == "recalled"]
    lines = [line.partition("] ")[2] for text in texts for line in text.splitlines() if line.startswith("- ")]
    return sorted(zip(context["recalled"], lines, strict=True), key=lambda one: -one[0]["score"])


def _word_found(one: Mapping[str, Any]) -> str:
    return f"{one['score']:.2f}  {one['kind']}{_word_id(one)} · {', '.join(_word_parts(one['parts']))}"


def _word_id(one: Mapping[str, Any]) -> str:
    """Return the id of a message, or an empty string for another text, whose id means nothing to a reader."""
    return f" {one['id']}" if one["kind"] == "message" else ""


def _word_parts(parts: Mapping[str, float]) -> Sequence[str]:
    return [f"{word} {parts[name]:.2f}" for name, word in _PARTS.items() if parts.get(name, 0.0) >= 0.005]
