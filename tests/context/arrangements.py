"""Plans for the tests: by hand, and drawn with everything that people and models write."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from app.context.formats import render, word
from app.context.parts import Parts, build_segment
from app.context.segments import Arrangement, Format, HistoryMessage, Rendered, RenderOptions, Segment, TranscriptStyle
from app.kit.tokens import count_tokens
from app.layers.contribution import Contribution, Item, Placement, TrimGroup
from tests.talk import FORMATS

SENT_AT = datetime(2025, 4, 1, 20, 15, tzinfo=UTC)


def entry(seq: int, role: str = "user", text: str = "Hello.", **more: Any) -> HistoryMessage:
    more["sent_at"] = more.get("sent_at", SENT_AT).isoformat()
    return HistoryMessage(seq, f"m{seq}", role, more.pop("name", None), text, count_tokens(text), **more)


def segment(name: str, text: str = "", **more: Any) -> Segment:
    text = text or f"The {name}."
    return Segment(name, text, count_tokens(text), **more)


def call(call_id: str, name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def render_options(fmt: Format, *, prefill: bool = False, factor: float = 1.0, **style: Any) -> RenderOptions:
    return RenderOptions(fmt, TranscriptStyle(**style), prefill, factor, count_tokens)


def rendered(arrangement: Arrangement, how: RenderOptions) -> Rendered:
    return render(word(arrangement, how))


def talk(length: int, first: str = "user") -> list[HistoryMessage]:
    """`length` messages in turn, from seq 1 on."""
    other = {"user": "assistant", "assistant": "user"}[first]
    return [entry(seq, first if seq % 2 else other, f"Message {seq}.") for seq in range(1, length + 1)]


def memo(number: int, *, pinned: bool = False) -> Item:
    """A memo of the book by its number; five of them are trimmed together."""
    text, first = f"Memo {number}.", number - (number - 1) % 5
    group = TrimGroup(first, f"{'pinned ' if pinned else ''}memos {first}–{first + 4}")
    return Item(text, count_tokens(text), (f"memo:{number}",), group=group, order=(number,), pinned=pinned)


def memos_of(items: Sequence[Item], placement: Placement | None = None) -> Contribution:
    return Contribution("memos", items, "## Memo Book", placement=placement or Placement())


def all_segments(one: Parts) -> list[Segment]:
    """The segments of the layers that have any item, and all others."""
    return [*(build_segment(given) for given in one.contributions if given.items), *one.segments]


def texts_of(answer: Rendered) -> list[str]:
    """Every text that the model reads, as it is sent."""
    if answer.text is not None:
        return [answer.text]
    if answer.messages is None:
        return [row["text"] for row in answer.segments]
    blocks = list(answer.system or [])
    for message in answer.messages:
        content = message["content"]
        blocks += content if isinstance(content, list) else [{"text": content or ""}]
    return [block["text"] for block in blocks]


_texts = st.one_of(
    st.sampled_from(
        [
            "Hello. ",
            "  *smiles*\n",
            "日本語、です。\u3000",
            "👩‍👩‍👧‍👦❤️",
            "é\u200b\u200d",
            "{<!!>}\\\n\n/",
            "مرحبا",
            "1,234.5%",
            "'s",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20),
    st.sampled_from([" ", "\n\t", "\u3000"]),
)
_names = st.sampled_from([None, None, "Sakura", "Anna Müller", "桜", " \n", "A\nUser: B", "x" * 65])
_calls = st.lists(st.sampled_from(["0", "1"]), min_size=1, max_size=2).map(lambda ids: [call(one) for one in ids])
_odd_calls = st.sampled_from([[{"id": "0"}], [{"type": "function", "function": {"name": "look"}}]])
_sent_at = st.datetimes().map(lambda at: at.replace(tzinfo=UTC))


@st.composite
def entries(draw: st.DrawFn, max_size: int = 12) -> list[HistoryMessage]:
    """A history with gaps in its seqs, tool calls answered, half answered or not at all."""
    history = []
    seq = 0
    roles = ["user", "assistant", "assistant", "tool", "tool", "narrator", "system"]
    for role in draw(st.lists(st.sampled_from(roles), max_size=max_size)):
        seq += draw(st.integers(1, 2))
        one = entry(seq, role, draw(_texts), name=draw(_names), sent_at=draw(_sent_at))
        if role == "assistant" and draw(st.booleans()):
            one = one._replace(tool_calls=draw(st.one_of(_calls, _odd_calls)))
        if role == "tool":
            one = one._replace(tool_call_id=draw(st.sampled_from(["0", "1", None])))
        history.append(one)
    return history


_roles: st.SearchStrategy[Any] = st.sampled_from(["system", "user", "assistant"])


@st.composite
def segments(draw: st.DrawFn) -> list[Segment]:
    """Some of the service's own, and some of the caller's at every kind of place."""
    own = [
        "system",
        "user",
        "instruction",
        "blocks",
        "facts",
        "pinned",
        "diary",
        "recap",
        "summary",
        "recalled",
        "time",
    ]
    names = draw(st.lists(st.sampled_from(own), unique=True))
    chosen = [segment(name, draw(_texts), cacheable=name not in ("recalled", "time")) for name in names]
    chosen = [_injected(draw, one) if one.name in ("recap", "pinned", "recalled") else one for one in chosen]
    for number in range(draw(st.integers(0, 3))):
        after = draw(st.sampled_from(["user", "memos", "history", "time", "newest", "in_chat", "in_chat"]))
        depth = draw(st.integers(0, 15)) if after == "in_chat" else 0
        chosen.append(segment(f"note{number}", draw(_texts), role=draw(_roles), after=after, depth=depth))
    return chosen


_placements = st.sampled_from(
    [Placement(), Placement("before_prompt"), Placement("in_chat", 0), Placement("in_chat", 3, "user")]
)


def _injected(draw: st.DrawFn, recap: Segment) -> Segment:
    after = draw(st.sampled_from([None, "before_prompt", "in_chat"]))
    if after != "in_chat":
        return recap._replace(after=after)
    return recap._replace(after=after, depth=draw(st.integers(0, 15)), role=draw(_roles))


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    history = draw(entries())
    head_seq = history[-1].seq if history else 0
    newest = entry(head_seq + 1, "user", draw(_texts), name=draw(_names)) if draw(st.booleans()) else None
    numbers = draw(st.lists(st.integers(1, 20), unique=True, max_size=8))
    memos = [memo(number, pinned=draw(st.booleans())) for number in sorted(numbers)]
    return Parts(
        segments=draw(segments()),
        contributions=[memos_of(memos, draw(_placements))],
        history=history,
        newest=newest,
        edges=draw(st.lists(st.integers(0, head_seq + 2), max_size=4)),
    )


@st.composite
def manners(draw: st.DrawFn) -> RenderOptions:
    return render_options(
        draw(st.sampled_from(FORMATS)),
        prefill=draw(st.booleans()),
        factor=draw(st.sampled_from([1.0, 1.35, 0.7])),
        timestamps=draw(st.sampled_from(["off", "inline"])),
        time_zone=draw(st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"])),
        character=draw(st.sampled_from([None, "Sakura"])),
    )
