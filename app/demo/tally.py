"""Formats what a model did in an evaluation: texts made, calls, refusals, requests after them, tokens, time. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.demo.words import count, fill, heading
from app.kit.refusals import Refusal

_COUNTS = (
    "made",
    "quoted",
    "empty",
    "failed",
    "calls",
    "refused",
    "asked again",
    "no answer",
    "tokens in",
    "tokens out",
)
_WIDTHS = {name: max(8, len(name) + 2) for name in (*_COUNTS, "seconds")}

Listed = Mapping[str, Any]


class Outcome(NamedTuple):
    """The numbers of texts of a layer, by how they were made.

    Attributes:
        made: How many the model wrote.
        quoted: How many consist of quotations, because no answer of the model could be used.
        empty: How many have nothing memorable.
        failed: How many have no text because of an error.

    """

    made: int = 0
    quoted: int = 0
    empty: int = 0
    failed: int = 0


def count_outcomes(items: Sequence[Listed]) -> Outcome:
    """Return the outcome of memos, scenes or versions, as the API lists them; a version has no `status`."""
    kinds = Counter(_kind_of(item) for item in items)
    return Outcome(**{name: kinds[name] for name in Outcome._fields})


def _kind_of(item: Listed) -> str:
    status = item.get("status", "ready")
    if status != "ready":
        return "empty" if status == "empty" else "failed"
    return "quoted" if item["origin"] == "extractive" else "made"


def word_tally(
    model: str,
    messages: int,
    seconds: float,
    outcomes: Mapping[str, Outcome],
    usage: Sequence[Listed],
    refusals: Sequence[tuple[str, Refusal]],
    asked_again: Mapping[str, int],
) -> Iterator[str]:
    """Yield the lines of the table and of the refused answers.

    Args:
        model: The model's name.
        messages: How many messages the conversation has.
        seconds: How long everything took.
        outcomes: For each layer that calls the model, the numbers of its texts, by the layer's name.
        usage: The calls of each layer, as `GET /v1/usage` returns them.
        refusals: (layer, refusal) of each refused answer.
        asked_again: For each layer, how many requests followed a refused answer; a layer without any may be missing.

    """
    yield heading(f"{model}: {count(messages, 'message')} in {seconds:,.0f} s")
    yield ""
    yield " " * 9 + "".join(f"{name:>{width}}" for name, width in _WIDTHS.items())
    refused = Counter(layer for layer, _ in refusals)
    of_layer = {row["layer"]: row for row in usage}
    for layer, outcome in outcomes.items():
        row = of_layer.get(layer, {})
        answers = (row.get("calls", 0), refused[layer], asked_again.get(layer, 0), row.get("failures", 0))
        tokens = (row.get("prompt_tokens", 0), row.get("completion_tokens", 0))
        counts = zip(_COUNTS, (*outcome, *answers, *tokens), strict=True)
        wait_s = f"{row.get('wait_s', 0.0):,.1f}"
        yield (
            f"{layer:<9}"
            + "".join(f"{number:>{_WIDTHS[name]},}" for name, number in counts)
            + f"{wait_s:>{_WIDTHS['seconds']}}"
        )
    yield ""
    if not refusals:
        yield "No answer was refused."
        return
    yield "Refused answers. After three, or two in which the model declines, the service does without the model:"
    for (layer, refusal), number in Counter(refusals).most_common():
        yield fill(f"{layer}, {refusal.kind}: {refusal.reason}{f' ({number} times)' if number > 1 else ''}", 2, "· ")
