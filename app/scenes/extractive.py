"""Recaps without a model: quotes of what was said, and joined lists. Pure.

Nothing is rephrased, so a recap claims only what was said. The most informative sentences of a scene are quoted as its
outcomes. Its threads and state stay empty, because they cannot be quoted. Recaps that a person or a model wrote are
joined line by line.
"""

from collections.abc import Callable, Sequence

from app.scenes.answer_parts import MAX_TITLE_CHARS
from app.scenes.answers import SceneText
from app.scenes.state_lines import depth_of, join_states, read_state
from app.summarising.extractive import Frequencies, extract_with
from app.summarising.pruning import thin
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"

SCENE_TOKENS = 200
RECAP_TOKENS = 600

_PART_MESSAGES = 10
_PART_TOKENS = 60
_HEADINGS = {"# Outcomes": 0, "# Threads": 1, "# State": 2}
_QUOTATION_MARKS = "“”*[]"

CountTokens = Callable[[str], int]


def quote_scene(said: Sequence[Utterance], *, count_tokens: CountTokens) -> SceneText | None:
    """Return the most informative sentences of a scene as its outcomes, or None if it contains only small talk."""
    frequencies = Frequencies.of(said)
    lines: list[str] = []
    for start in range(0, len(said), _PART_MESSAGES):
        part = said[start : start + _PART_MESSAGES]
        lines += extract_with(part, frequencies, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)
    if not lines:
        return None
    outcomes = thin_out([f"- {line}" for line in lines], SCENE_TOKENS, count_tokens)
    best = extract_with(said, frequencies, budget_tokens=_PART_TOKENS, count_tokens=count_tokens) or lines
    return SceneText(shorten_title(max(best, key=len)), "\n".join(outcomes), "", "")


def fold_quotes(former: str, recaps: Sequence[str], *, count_tokens: CountTokens) -> str:
    """Return the running recap `former` with the recaps of further scenes appended, usually at most RECAP_TOKENS.

    If it is longer, the shortest lines of the older half are dropped: from the outcomes, then from the threads, then
    from the state. Each part keeps at least one line. Each label of the state has its newest value. A heading without
    lines is left out.
    """
    all_parts = [split_parts(recap) for recap in (former, *recaps)]
    outcomes = [line for recap in all_parts for line in recap[0]]
    threads = list(dict.fromkeys(line for recap in all_parts for line in recap[1]))
    state = join_states([_without_groups(recap[2]) for recap in all_parts if recap[2]])

    parts = (outcomes, threads, state)

    def text() -> str:
        headed = zip(_HEADINGS, parts, strict=True)
        return "\n\n".join("\n".join((heading, *lines)) for heading, lines in headed if lines)

    for lines in parts:
        while len(lines) > 1 and count_tokens(text()) > RECAP_TOKENS:
            lines[:] = thin(lines)
    return text()


def split_parts(recap: str) -> tuple[list[str], list[str], list[str]]:
    """Return the lines of outcomes, threads and state; lines before the first heading are outcomes."""
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    into = parts[0]
    for line in recap.splitlines():
        if (part := _HEADINGS.get(line.strip())) is not None:
            into = parts[part]
        elif line.strip():
            into.append(line.rstrip())
    return parts


def _without_groups(state: Sequence[str]) -> list[str]:
    bare = [line.lstrip() for line in state]
    return read_state([(depth_of(text, len(line) - len(text)), text) for line, text in zip(state, bare, strict=True)])


def thin_out(lines: Sequence[str], limit_tokens: int, count_tokens: CountTokens) -> list[str]:
    """Return at most `limit_tokens` of `lines`, but at least one line; short and older lines are dropped first."""
    left = list(lines)
    while len(left) > 1 and count_tokens("\n".join(left)) > limit_tokens:
        left = thin(left)
    return left


def shorten_title(quote: str) -> str:
    """Return the first words of a quote, as a title."""
    plain = " ".join("".join(" " if char in _QUOTATION_MARKS else char for char in quote).split())
    if len(plain) <= MAX_TITLE_CHARS:
        return plain
    head = plain[:MAX_TITLE_CHARS]
    return f"{(head.rpartition(' ')[0] or head[:-1]).rstrip(' ,;:–—-.')}…"
