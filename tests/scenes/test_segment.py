"""What scenes put into a context, and where."""

from typing import Any

import pytest

from app.chats.settings import check_overrides
from app.context.parts import build_segment
from app.kit.tokens import count_tokens
from app.layers.contribution import View
from app.scenes.segment import contribute, count_tokens_shown

SHOWN = {"version": 3, "text": "# Outcomes\n- Kai stayed.", "tokens": count_tokens_shown("# Outcomes\n- Kai stayed.")}


def recap_segment(shown: dict[str, Any], **recap: Any) -> Any:
    settings = check_overrides({"preset": "scenes", "scenes": {"recap": recap}})
    segments = contribute(View(shown, None, settings)).segments
    return build_segment(segments[0]) if segments else None


def test_the_running_recap_has_its_heading() -> None:
    segment = recap_segment(SHOWN)
    assert segment.text == "## Running Recap\n\n### Outcomes\n- Kai stayed."
    assert (segment.name, segment.after, segment.sources) == ("recap", "before_prompt", ("recap:3",))
    assert segment.tokens == count_tokens(segment.text)
    assert segment.scan is False


def test_without_a_version_there_is_no_segment() -> None:
    assert recap_segment({}) is None
    assert recap_segment({"gaps": [[1, 4]], "edges": [5]}) is None


@pytest.mark.parametrize(
    ("position", "after"),
    [
        ("none", None),
        (-1, None),
        ("before_prompt", "before_prompt"),
        (2, "before_prompt"),
        ("in_prompt", None),
        (0, None),
        ("in_chat", "in_chat"),
        (1, "in_chat"),
    ],
)
def test_the_position_is_set_by_name_or_by_number(position: str | int, after: str | None) -> None:
    segment = recap_segment(SHOWN, position=position)
    assert (segment.after if segment else None) == after
    assert (segment is None) == (position in ("none", -1))


def test_depth_and_role_count_only_among_the_messages() -> None:
    among = recap_segment(SHOWN, position="in_chat", depth=4, role="user", scan=True)
    assert (among.depth, among.role, among.scan) == (4, "user", True)
    before = recap_segment(SHOWN, position="in_prompt", depth=4, role="user")
    assert (before.depth, before.role) == (0, "system")
