"""Formats what recall finds for a question. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.demo.words import fill, heading

MOST_SHOWN = 3
"""How many results are shown, the best ones."""

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
    texts = [segment["text"] for segment in context["segments"] if segment["name"] == "recalled"]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("- ")]
    found = sorted(zip(context["recalled"], lines, strict=True), key=lambda one: -one[0]["score"])
    if not found:
        yield "\n" + fill("Nothing.", 2)
    for one, line in found[:MOST_SHOWN]:
        yield f"\n  {one['score']:.2f}  {one['kind']}{_word_id(one)} · {', '.join(_word_parts(one['parts']))}"
        yield fill(line.partition("] ")[2], 8)
    if not any("vector" in one["parts"] for one in context["recalled"]):
        yield "\n" + fill(_BY_WORDS, 2)


def _word_id(one: Mapping[str, Any]) -> str:
    """Return the id of a message, or an empty string for another text, whose id means nothing to a reader."""
    return f" {one['id']}" if one["kind"] == "message" else ""


def _word_parts(parts: Mapping[str, float]) -> Sequence[str]:
    return [f"{word} {parts[name]:.2f}" for name, word in _PARTS.items() if parts.get(name, 0.0) >= 0.005]
