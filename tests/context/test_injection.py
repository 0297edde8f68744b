"""Where each format puts a segment with a position, depth and role."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.calls import find_calls
from app.context.order import arrange
from app.context.parts import build_segment
from app.context.segments import Arrangement, Format, HistoryMessage, Rendered, Segment, SegmentRole
from app.layers.contribution import Contribution, Item, Placement
from tests.context.arrangements import call, entry, render_options, rendered, segment, talk, texts_of
from tests.talk import FORMATS

ROLES: tuple[SegmentRole, ...] = ("system", "user", "assistant")
RECAP = "«recap»"
OTHERS = [segment(name) for name in ("system", "user", "pinned", "diary", "summary", "memos", "time")]


def recap(**injected: Any) -> Segment:
    item = Item(RECAP, 5, ("recap:4",))
    return build_segment(Contribution("recap", (item,), placement=Placement(**injected)))


def shown(one: Segment, fmt: Format, **messages: Any) -> Rendered:
    """A context of ten messages, or of those given, and a bit of everything."""
    arrangement = arrange(
        [*OTHERS, one], messages.get("history", talk(9)), messages.get("newest", entry(10, text="Message 10.")), 1
    )
    return rendered(arrangement, render_options(fmt))


def order(answer: Rendered, *texts: str) -> list[str]:
    """`texts` in the order in which the model reads them."""
    everything = "\n".join(texts_of(answer))
    return sorted(texts, key=everything.index)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_the_position_before_prompt_comes_first_without_a_role(fmt: Format, role: SegmentRole) -> None:
    answer = shown(recap(position="before_prompt", role=role), fmt)
    assert texts_of(answer)[0].startswith(RECAP)
    assert [row["name"] for row in answer.segments][:2] == ["recap", "system"]
    assert (answer.segments[0]["role"], answer.segments[0]["cacheable"]) == ("system", True)
    if answer.messages and fmt == "openai":
        assert answer.messages[0]["role"] == "system"
    if answer.system is not None:
        assert answer.system[0]["text"] == RECAP


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_position_in_prompt_keeps_the_usual_order(fmt: Format) -> None:
    answer = shown(recap(depth=3, role="user"), fmt)
    names = [row["name"] for row in answer.segments]
    assert names[names.index("diary") :][:4] == ["diary", "recap", "summary", "memos"]
    wanted = ["The diary.", RECAP, "The summary.", "The memos.", "Message 1."]
    assert order(answer, *reversed(wanted)) == wanted


@pytest.mark.parametrize(("depth", "behind"), [(0, 0), (1, 1), (2, 2), (9, 9), (10, 10), (1_000, 10)])
@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "segments"])
def test_the_position_in_chat_counts_messages_from_the_end(fmt: Format, depth: int, behind: int) -> None:
    answer = shown(recap(position="in_chat", depth=depth), fmt)
    messages = [f"Message {seq}." for seq in range(1, 11)]
    assert order(answer, *messages, RECAP) == [*messages[: 10 - behind], RECAP, *messages[10 - behind :]]


@pytest.mark.parametrize("role", ROLES)
def test_a_recap_in_the_chat_has_its_role(role: SegmentRole) -> None:
    messages = shown(recap(position="in_chat", depth=2, role=role), "openai").messages or []
    assert [one["role"] for one in messages if one["content"] == RECAP] == [role]


@pytest.mark.parametrize(
    ("role", "said"),
    [("system", ("user", f"[System] {RECAP}")), ("user", ("user", RECAP)), ("assistant", ("assistant", RECAP))],
)
def test_a_role_the_format_lacks_is_written_into_the_text(role: SegmentRole, said: tuple[str, str]) -> None:
    messages = shown(recap(position="in_chat", depth=2, role=role), "anthropic").messages or []
    flat = [(one["role"], block["text"]) for one in messages for block in one["content"]]
    assert [one for one in flat if RECAP in one[1]] == [said]


@pytest.mark.parametrize("role", ROLES)
def test_the_text_format_marks_a_recap_in_the_chat_by_role(role: SegmentRole) -> None:
    (text,) = texts_of(shown(recap(position="in_chat", depth=2, role=role), "text"))
    assert f"\n\n[{role.capitalize()}] {RECAP}\n\n" in text


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_a_segment_in_the_chat_lists_its_depth_and_role(fmt: Format, role: SegmentRole) -> None:
    rows = shown(recap(position="in_chat", depth=2, role=role), fmt).segments
    (row,) = [row for row in rows if row["name"] == "recap"]
    assert (row["depth"], row["role"], row["cacheable"], row["sources"]) == (2, role, False, ["recap:4"])
    assert all("depth" not in row for row in rows if row["name"] != "recap")


@pytest.mark.parametrize("injected", [{}, {"position": "before_prompt"}, {"position": "in_chat"}])
@pytest.mark.parametrize("scan", [True, False, None])
@pytest.mark.parametrize("fmt", FORMATS)
def test_the_scan_flag_is_returned_only_if_it_is_set(fmt: Format, scan: bool | None, injected: Any) -> None:
    rows = shown(recap(scan=scan, **injected), fmt).segments
    assert [(row["name"], row["scan"]) for row in rows if "scan" in row] == [("recap", scan)] * (scan is not None)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[HistoryMessage], HistoryMessage | None]:
    """Draw distinct messages with tool calls that are answered at once, late or never."""
    history = []
    for at, role in enumerate(
        draw(st.lists(st.sampled_from(["user", "assistant", "tool", "narrator"]), max_size=10)), 1
    ):
        one = entry(at, role, f"«{at}»")
        if role == "assistant" and draw(st.booleans()):
            one = one._replace(tool_calls=[call(draw(st.sampled_from(["0", "1"])))])
        if role == "tool":
            one = one._replace(tool_call_id=draw(st.sampled_from(["0", "1"])))
        history.append(one)
    newest = entry(len(history) + 1, text=f"«{len(history) + 1}»") if draw(st.booleans()) else None
    return history, newest


@given(
    conversations(),
    st.integers(0, 13),
    st.sampled_from(ROLES),
    st.sampled_from([fmt for fmt in FORMATS if fmt != "segments"]),
    st.booleans(),
    st.booleans(),
)
def test_depth_counts_from_the_end_and_keeps_calls_with_results(
    said: tuple[list[HistoryMessage], HistoryMessage | None],
    depth: int,
    role: SegmentRole,
    fmt: Format,
    prefill: bool,
    volatile: bool,
) -> None:
    history, newest = said
    segments = [recap(position="in_chat", depth=depth, role=role), *OTHERS[: 7 if volatile else 6]]
    answer = rendered(arrange(segments, history, newest, 1), render_options(fmt, prefill=prefill))
    messages = [one.text for one in [*history, *([newest] if newest else [])]]
    assert order(answer, *messages, RECAP) == put_by_hand(history, messages, depth)


def put_by_hand(history: list[HistoryMessage], messages: list[str], depth: int) -> list[str]:
    """The slow, obvious way: from the end step back message by message, on while a call waits for its result."""
    before, behind = list(messages), list[str]()
    while before and (len(behind) < depth or _is_parted(history, len(before))):
        behind.insert(0, before.pop())
    return [*before, RECAP, *behind]


def _is_parted(history: list[HistoryMessage], before: int) -> bool:
    return any(call < before <= result for result, call in find_calls(history).items())


@pytest.mark.parametrize("fmt", FORMATS)
def test_only_segments_before_the_prompt_change_the_prefix(fmt: Format) -> None:
    def prefix_hash(one: Segment) -> str:
        return shown(one, fmt).prefix_hash

    early, late = recap(position="before_prompt"), recap(position="in_chat", depth=2)
    assert prefix_hash(early) != prefix_hash(early._replace(text="Other.", tokens=2))
    assert prefix_hash(late) == prefix_hash(late._replace(text="Other.", tokens=2))


def test_a_recap_before_the_prompt_keeps_the_breakpoints() -> None:
    prefix = [segment("system"), segment("user"), segment("facts"), segment("memos")]

    def marks(*segments: Segment) -> list[str]:
        arrangement = arrange(segments, talk(40), entry(41), 1)
        return [one.after for one in rendered(arrangement, render_options("anthropic")).breakpoints]

    usual = ["segment:user", "segment:memos", "message:m32", "message:m41"]
    assert marks(*prefix) == usual
    assert marks(recap(position="before_prompt"), *prefix) == usual
    assert marks(recap(), *prefix) == usual
    assert marks(recap(position="in_chat", depth=4), *prefix) == [*usual[:3], "message:m37"]
    assert marks(recap(position="before_prompt")) == ["segment:recap", "message:m32", "message:m41"]


def test_an_empty_conversation_has_the_recap_after_its_prefix() -> None:
    answer = rendered(
        Arrangement(prefix=OTHERS[:1], in_chat=[recap(position="in_chat", depth=2)]), render_options("openai")
    )
    assert texts_of(answer) == [f"The system.\n\n{RECAP}"]
