from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters, is_eligible
from app.memos.batches import Batch, OpenBatch, form_batches, recount

Settings = tuple[int, Filters]


@dataclass(frozen=True)
class Said:
    seq: int
    role: str = "user"
    name: str | None = None
    kind: str | None = None
    tokens: int = 5
    blank: bool = False
    excluded: bool = False
    hidden_by: str | None = None
    deleted: bool = False

    @property
    def digest(self) -> bytes:
        return bytes([self.seq])


filters = st.builds(
    Filters,
    include_user=st.booleans(),
    include_system=st.booleans(),
    include_narrator=st.booleans(),
    min_tokens=st.integers(0, 2),
    disabled=st.sampled_from([(), ("Kai",)]),
)
settings = st.tuples(st.integers(1, 9), filters)


@st.composite
def talks(draw: st.DrawFn) -> list[Said]:
    """Messages of a line from seq 1 on, more of them eligible than not."""
    roles = st.sampled_from(["user", "user", "assistant", "assistant", "narrator", "system", "tool"])
    marks = st.sampled_from([None, None, None, "thought", "blank"])
    return [
        Said(
            seq,
            role,
            name=draw(st.sampled_from([None, "Kai"])),
            kind="thought" if mark == "thought" else None,
            blank=mark == "blank",
            tokens=draw(st.integers(0, 9)),
        )
        for seq, (role, mark) in enumerate(draw(st.lists(st.tuples(roles, marks), max_size=60)), 1)
    ]


def changed(message: Said) -> st.SearchStrategy[Said]:
    """The same message after a change."""
    return st.builds(
        replace,
        st.just(message),
        excluded=st.booleans(),
        deleted=st.booleans(),
        hidden_by=st.sampled_from([None, "user", "scenes"]),
        tokens=st.integers(0, 9),
    )


def _slow(messages: Sequence[Said], in_force: Sequence[Settings]) -> list[Batch]:
    """Batches by their definition; `in_force` are the settings at each message."""
    batches: list[Batch] = []
    start = 0
    while True:
        opener = next((at for at in range(start, len(messages)) if is_eligible(messages[at], in_force[at][1])), None)
        if opener is None:
            return batches
        size, chosen = in_force[opener]
        eligible = [at for at in range(opener, len(messages)) if is_eligible(messages[at], chosen)]
        if len(eligible) < size:
            return batches
        last = eligible[size - 1]
        batches.append(Batch(messages[start].seq, messages[last].seq, size, chosen))
        start = last + 1


def _split(messages: Sequence[Said], cuts: Sequence[int]) -> list[Sequence[Said]]:
    return [messages[start:end] for start, end in pairwise([0, *sorted(cuts), len(messages)])]


def _in_parts(parts: Sequence[Sequence[Said]], chosen: Sequence[Settings]) -> tuple[list[Batch], OpenBatch | None]:
    """Form batches append by append, each under its settings; between them the open one is JSON on a row."""
    formed: list[Batch] = []
    stored = b"null"
    for part, (size, each) in zip(parts, chosen, strict=True):
        row = orjson.loads(stored)
        batches, open_batch = form_batches(OpenBatch.from_json(row) if row else None, part, size=size, filters=each)
        formed += batches
        stored = orjson.dumps(open_batch.to_json() if open_batch else None)
    row = orjson.loads(stored)
    return formed, OpenBatch.from_json(row) if row else None


@given(talks(), settings)
def test_a_batch_ends_at_its_last_eligible_message(messages: list[Said], chosen: Settings) -> None:
    size, each = chosen
    formed, open_batch = form_batches(None, messages, size=size, filters=each)
    assert formed == _slow(messages, [chosen] * len(messages))
    for batch in formed:
        inside = messages[batch.first_seq - 1 : batch.last_seq]
        assert count_eligible(inside, each) == size
        assert is_eligible(inside[-1], each)
    covered = [seq for batch in formed for seq in range(batch.first_seq, batch.last_seq + 1)]
    assert covered == list(range(1, len(covered) + 1))
    if open_batch:
        left = messages[len(covered) :]
        assert (open_batch.first_seq, open_batch.count) == (len(covered) + 1, count_eligible(left, each))
        assert open_batch.count < size
    else:
        assert messages == []


@given(talks(), st.lists(st.integers(0, 60)), settings)
def test_batches_do_not_depend_on_how_appends_are_split(
    messages: list[Said], cuts: list[int], chosen: Settings
) -> None:
    size, each = chosen
    parts = _split(messages, cuts)
    assert _in_parts(parts, [chosen] * len(parts)) == form_batches(None, messages, size=size, filters=each)


@given(talks(), talks(), settings)
def test_later_messages_move_no_batch_boundary(messages: list[Said], more: list[Said], chosen: Settings) -> None:
    size, each = chosen
    before, _ = form_batches(None, messages, size=size, filters=each)
    later = [Said(len(messages) + said.seq, said.role, tokens=said.tokens) for said in more]
    after, _ = form_batches(None, [*messages, *later], size=size, filters=each)
    assert after[: len(before)] == before


@given(talks(), st.lists(st.integers(0, 60), max_size=6), st.data())
def test_changed_settings_apply_from_the_next_batch_on(
    messages: list[Said], cuts: list[int], data: st.DataObject
) -> None:
    parts = _split(messages, cuts)
    chosen = data.draw(st.tuples(*[settings] * len(parts)))
    in_force = [each for part, each in zip(parts, chosen, strict=True) for _ in part]
    formed, _ = _in_parts(parts, chosen)
    assert formed == _slow(messages, in_force)


def test_a_batch_keeps_the_size_and_filters_it_was_opened_with() -> None:
    all_of_them, characters_only = Filters(), Filters(include_user=False)
    messages = [Said(seq, "user" if seq % 2 else "assistant") for seq in range(1, 21)]
    _, open_batch = form_batches(None, messages[:1], size=4, filters=all_of_them)
    formed, open_batch = form_batches(open_batch, messages[1:], size=2, filters=characters_only)
    assert formed[:3] == [
        Batch(1, 4, 4, all_of_them),
        Batch(5, 8, 2, characters_only),
        Batch(9, 12, 2, characters_only),
    ]
    assert open_batch == OpenBatch(21, 2, characters_only)


def test_a_batch_without_eligible_messages_takes_new_settings() -> None:
    nobody = Filters(include_user=False)
    _, open_batch = form_batches(None, [Said(1), Said(2)], size=8, filters=nobody)
    formed, _ = form_batches(open_batch, [Said(3), Said(4)], size=2, filters=Filters())
    assert formed == [Batch(1, 4, 2, Filters())]


@pytest.mark.parametrize("size", [1, 8, 64])
def test_an_import_of_1000_messages_forms_all_batches_at_once(size: int) -> None:
    formed, open_batch = form_batches(None, [Said(seq) for seq in range(1, 1_001)], size=size, filters=Filters())
    assert [(batch.first_seq, batch.last_seq) for batch in formed] == [
        (first, first + size - 1) for first in range(1, 1_002 - size, size)
    ]
    assert open_batch == OpenBatch(1_000 // size * size + 1, size, Filters(), 1_000 % size)


def test_an_empty_list_opens_no_batch() -> None:
    assert form_batches(None, [], size=8, filters=Filters()) == ([], None)


def test_a_first_message_later_on_the_line_opens_a_batch_there() -> None:
    formed, _ = form_batches(None, [Said(seq) for seq in range(41, 43)], size=2, filters=Filters())
    assert formed == [Batch(41, 42, 2, Filters())]


@given(talks(), settings, st.data())
def test_the_open_batchs_count_is_correct_after_any_change(
    messages: list[Said], chosen: Settings, data: st.DataObject
) -> None:
    size, each = chosen
    _, open_batch = form_batches(None, messages, size=size, filters=each)
    if open_batch is None:
        return
    pairs = [(message, data.draw(changed(message))) for message in messages if data.draw(st.booleans())]
    now = {message.seq: message for message in messages} | {after.seq: after for _, after in pairs}
    filling = [message for seq, message in now.items() if seq >= open_batch.first_seq]
    count = count_eligible(filling, each)
    assert recount(open_batch, pairs) == replace(open_batch, count=count)


def count_eligible(messages: Sequence[Said], filters: Filters) -> int:
    return sum(is_eligible(message, filters) for message in messages)
