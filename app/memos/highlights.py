"""Highlights: the sentences of a memo, and their text form. Pure."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from app.kit.tokens import count_tokens

Category = Literal["relationship", "milestone", "keepsake", "turning_point"]

_SHOWN_LABEL = re.compile(r"(?<!\*)\**【\s*highlight\s*(?:\d+\s*)?】\**\s*[:：]?\**", re.I)


@dataclass(frozen=True, slots=True)
class Highlight:
    """One factual sentence; `text` is a single line."""

    text: str
    category: Category | None = None


def render_highlights(highlights: Sequence[Highlight]) -> str:
    """Return `highlights` as the prompt and the book show them: `【Highlight 1】: …`, one line each."""
    return "\n".join(f"【Highlight {n}】: {highlight.text}" for n, highlight in enumerate(highlights, start=1))


def highlights_from_text(text: str) -> list[Highlight]:
    """Return one highlight for each line of a person's text, without its 【Highlight n】 label; skip blank lines.

    Lines are not shortened, white space inside them stays as it is, and no category is read from them.
    """
    lines = (_SHOWN_LABEL.sub("", line, count=1).strip() for line in text.splitlines())
    return [Highlight(line) for line in lines if line]


def text_values(highlights: Sequence[Highlight], text: str) -> dict[str, Any]:
    """Return the values of the columns that hold a memo's text."""
    return {
        "highlights": [asdict(highlight) for highlight in highlights],
        "text": text,
        "tokens": count_tokens(text),
    }
