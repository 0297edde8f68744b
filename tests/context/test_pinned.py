from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.chats.settings import ChatSettings, schema
from app.context.pinned import PinnedLine, build_pinned, choose_pinned
from app.context.segments import HistoryMessage, TranscriptStyle
from app.context.wording import word_line
from app.kit.tokens import count_tokens
from tests.context.arrangements import entries, entry, talk

PLAIN = TranscriptStyle()


def _settings(value: int | None, kind: str = "absolute", context_tokens: int = 32_000) -> ChatSettings:
    budget = None if value is None else {"type": kind, "value": value}
    return schema().whole.model_validate({"pinned": {"budget": budget}, "context_tokens": context_tokens})


def _seqs(lines: Sequence[PinnedLine]) -> list[int]:
    return [line.seq for line in lines]


def test_pinned_messages_are_in_story_order_with_their_speakers() -> None:
    pinned = [
        entry(2, text="Keep this.", name="Mira"),
        entry(5, "assistant", "I will.\n\nAlways."),
        entry(9, "narrator", "Rain."),
    ]
    segment = build_pinned(choose_pinned(pinned, _settings(None), TranscriptStyle(character="Kai"))[0])
    text = "## Pinned Messages\n\nMira: Keep this.\n\nKai: I will.\n\nAlways.\n\n[Narrator] Rain."
    assert (segment.name, segment.role, segment.text) == ("pinned", "system", text)
    assert (segment.tokens, segment.cacheable) == (count_tokens(text), True)
    assert segment.sources == ("message:m2", "message:m5", "message:m9")


def test_a_pinned_message_has_its_time_if_the_history_has_times() -> None:
    style = TranscriptStyle("inline", "Asia/Tokyo", "Sakura")
    pinned = [entry(1, "assistant", "Hi.", sent_at=datetime(2026, 4, 1, 13, 15, tzinfo=UTC))]
    lines, _ = choose_pinned(pinned, _settings(None), style)
    assert [line.text for line in lines] == ["[04/01 22:15] Sakura: Hi."]


def test_a_pinned_messages_cost_includes_its_speaker() -> None:
    pinned = talk(3)
    costs = [count_tokens(word_line(one, PLAIN)) for one in pinned]
    assert costs[0] > pinned[0].tokens
    assert [line.tokens for line in choose_pinned(pinned, _settings(None), PLAIN)[0]] == costs
    exactly = choose_pinned(pinned, _settings(costs[1] + costs[2]), PLAIN)
    assert tuple(map(_seqs, exactly)) == ([2, 3], [1])
    too_few = choose_pinned(pinned, _settings(costs[1] + costs[2] - 1), PLAIN)
    assert tuple(map(_seqs, too_few)) == ([3], [1, 2])


def test_after_one_over_budget_no_older_one_is_included() -> None:
    pinned = [entry(1, text="Yes."), entry(2, text="A much longer thing to say. " * 9), entry(3, text="No.")]
    kept, left_out = choose_pinned(pinned, _settings(20), PLAIN)
    assert (_seqs(kept), _seqs(left_out)) == ([3], [1, 2])


def test_a_zero_budget_keeps_none_and_no_budget_keeps_all() -> None:
    assert tuple(map(_seqs, choose_pinned(talk(3), _settings(0), PLAIN))) == ([], [1, 2, 3])
    assert tuple(map(_seqs, choose_pinned(talk(3), _settings(None), PLAIN))) == ([1, 2, 3], [])
    assert choose_pinned([], _settings(0), PLAIN) == ([], [])


@st.composite
def _pinned_and_settings(draw: st.DrawFn) -> tuple[list[HistoryMessage], TranscriptStyle, dict[str, Any], int]:
    """Messages, their wording, a budget that often is just enough for some of them, and what is in it by hand."""
    pinned = draw(entries())
    style = TranscriptStyle(
        draw(st.sampled_from(["off", "inline"])), "Asia/Tokyo", draw(st.sampled_from([None, "Sakura"]))
    )
    newest = draw(st.integers(0, len(pinned)))
    enough = sum(count_tokens(word_line(one, style)) for one in pinned[len(pinned) - newest :])
    limit = max(0, enough + draw(st.integers(-1, 1)))
    if draw(st.booleans()):
        return pinned, style, {"type": "absolute", "value": limit}, limit
    return pinned, style, {"type": "percent", "value": 5}, limit


@given(_pinned_and_settings(), st.integers(0, 19))
def test_pinned_messages_are_the_longest_newest_run_in_budget(
    drawn: tuple[list[HistoryMessage], TranscriptStyle, dict[str, Any], int], rest: int
) -> None:
    pinned, style, budget, limit = drawn
    # 5 percent of this is `limit` and a fraction of a token, which is rounded away.
    settings = _settings(budget["value"], budget["type"], max(1, limit * 20 + rest))
    kept, left_out = choose_pinned(pinned, settings, style)
    layout = [word_line(one, style) for one in pinned]
    start = min(at for at in range(len(pinned) + 1) if sum(map(count_tokens, layout[at:])) <= limit)
    assert [line.text for line in kept] == layout[start:]
    assert [line.text for line in left_out] == layout[:start]
    assert [(line.seq, line.message_id) for line in (*left_out, *kept)] == [(one.seq, one.message_id) for one in pinned]
    assert [line.tokens for line in (*left_out, *kept)] == [count_tokens(text) for text in layout]
