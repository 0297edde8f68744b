"""What must be true of a line after every step, and what once all work is done: the service against the model."""

import orjson

from app.chats.hashes import content_digest, range_hash
from app.kit.tokens import count_tokens
from tests.conversation_model import Line, Memo, Said
from tests.conversation_service import WORD, Seen
from tests.talk import Json


def check_line(line: Line, seen: Seen) -> None:
    """Everything that holds at any time."""
    assert seen.row["line"] == line.id
    check_messages(line, seen)
    check_counters(line, seen)
    check_batches(line, seen)
    check_book(line, seen)
    check_work(line, seen)
    check_window(line, seen)
    check_context(line, seen)
    check_anchor(line, seen)


def check_messages(line: Line, seen: Seen) -> None:
    assert [(row["seq"], row["message_id"], row["deleted"]) for row in seen.messages] == [
        (seq, said.id, said.deleted) for seq, said in enumerate(line.messages, start=1)
    ]
    assert [_told(item) for item in seen.listed] == [_expected(line, said) for said in line.living]


def _told(item: Json) -> Json:
    names = ("seq", "id", "role", "kind", "content", "tokens", "swipes", "selected_swipe")
    marks = ("excluded", "pinned", "hidden_by", "edited", "memo_id")
    return {name: item[name] for name in (*names, *marks)}


def _expected(line: Line, said: Said) -> Json:
    memo = next((m for m in line.book if m.batch and m.batch[0] <= said.seq <= m.batch[1]), None)
    return {
        "seq": said.seq,
        "id": said.id,
        "role": said.role,
        "kind": said.kind,
        "content": said.text,
        "tokens": count_tokens(said.text),
        "swipes": said.texts,
        "selected_swipe": said.selected,
        "excluded": said.excluded,
        "pinned": said.pinned,
        "hidden_by": said.hidden_by,
        "edited": said.edited,
        "memo_id": memo.id if memo else None,
    }


def check_counters(line: Line, seen: Seen) -> None:
    row = seen.row
    assert row["head_seq"] == line.head
    assert row["message_count"] == len(line.living)
    assert row["token_count"] == line.tokens()
    assert row["turn_count"] == line.turns()
    assert row["memo_count"] == len(line.book)
    assert row["memo_number"] == line.last_number
    assert row["history_messages"] == len(line.sent_from(seen.anchor))


def check_batches(line: Line, seen: Seen) -> None:
    """Which batches there are, deleted memos' too; and each memo's hash is that of what its messages say."""
    stored = [row for row in seen.memos if row["first_seq"] is not None]
    assert [(row["first_seq"], row["last_seq"], row["number"], row["deleted"]) for row in stored] == [
        (*(memo.batch or ()), memo.number, memo.deleted) for memo in line.batches
    ]
    for row, memo in zip(stored, line.batches, strict=True):
        assert row["id"] == memo.id
        assert row["current_hash"] == hash_of(line, memo)


def hash_of(line: Line, memo: Memo) -> bytes:
    return range_hash((seq, content_digest(role, name, text)) for seq, role, name, text in line.source(memo))


def check_book(line: Line, seen: Seen) -> None:
    assert [_entry(item) for item in seen.book] == _expected_book(line, seen.anchor)


def check_as_left(line: Line, listed: list[Json], book: list[Json]) -> None:
    """A line that nobody goes on with: its messages and its book are as they were left."""
    assert [_told(item) for item in listed] == [_expected(line, said) for said in line.living]
    assert [_entry(item) for item in book] == _expected_book(line, line.anchor)


def _expected_book(line: Line, anchor: int) -> list[Json]:
    shown = line.shown(anchor)
    return [
        {
            "id": memo.id,
            "number": memo.number,
            "first_seq": memo.batch[0] if memo.batch else None,
            "last_seq": memo.batch[1] if memo.batch else None,
            "after_seq": None if memo.batch else memo.after_seq,
            "first_message_id": line.first_shown(memo),
            "status": "failed" if memo.status == "pending" and memo.failed else memo.status,
            "stale": line.stale(memo),
            "text": memo.text,
            "pinned": memo.pinned,
            "edited": memo.edited,
            "origin_is_person": memo.by_person,
            "in_prompt": memo in shown,
        }
        for memo in line.book
    ]


def _entry(item: Json) -> Json:
    names = ("id", "number", "first_seq", "last_seq", "after_seq", "first_message_id", "status", "stale", "text")
    by_person = item["origin"] == "person"
    return {name: item[name] for name in (*names, "pinned", "edited", "in_prompt")} | {"origin_is_person": by_person}


def check_work(line: Line, seen: Seen) -> None:
    """Due is what a batch needs, and nothing else."""
    assert {memo_id: row["failed"] for memo_id, row in seen.work.items()} == {
        memo.id: memo.failed for memo in line.batches if line.needs_work(memo)
    }
    assert not [row["error"] for row in seen.work.values() if "unexpected" in (row["error"] or "")]


def check_window(line: Line, seen: Seen) -> None:
    column = {"memos": [], "pinned": [], "gaps": [], **(seen.row["memo_window"] or {})}
    assert column == orjson.loads(orjson.dumps(seen.window))
    shown = line.shown(seen.anchor)
    assert [entry["id"] for entry in column["memos"]] == [memo.id for memo in shown if not memo.pinned]
    assert [entry["id"] for entry in column["pinned"]] == [memo.id for memo in shown if memo.pinned]
    assert {seq for first, last in column["gaps"] for seq in range(first, last + 1)} == line.gaps(seen.anchor)


def check_context(line: Line, seen: Seen) -> None:
    """Word for word what is to be in it, in this order: nothing stale, buried, unselected, or from another line."""
    pinned = [said.text for said in line.pinned(seen.anchor)]
    memos = [memo.text for memo in line.shown(seen.anchor)]
    history = [said.text for said in line.sent_from(seen.anchor)]
    assert seen.words == WORD.findall("\n".join([*pinned, *memos, *history]))
    assert seen.context["history"]["messages"] == len(history)
    assert seen.context["memo_window"]["memos"] == len(memos)


def check_anchor(line: Line, seen: Seen) -> None:
    """Enough is sent, from an edge on or from where a cut was forced."""
    cut = seen.row["last_cut"]
    assert seen.anchor == (cut["at_seq"] if cut else 1)
    assert seen.anchor == 1 or len(line.sent_from(seen.anchor)) >= line.rules.keep
    edges = {1, *(memo.batch[1] + 1 for memo in line.batches if memo.batch)}
    assert seen.anchor in edges or cut["reason"] == "forced"


def check_moves(line: Line, seen: Seen, *, forward: bool, back: bool) -> None:
    """Where the anchor has moved since the line was last looked at, and whether it was allowed to.

    Where it could do both in one step, it may have gone back before something was appended, which formed more edges.
    """
    if seen.anchor == line.anchor:
        return
    assert forward if seen.anchor > line.anchor else back
    reason = seen.row["last_cut"]["reason"]
    if reason == "rewind" and not forward:
        assert seen.anchor == (line.target(1) or 1)
    elif reason != "rewind":
        assert line.keeps(seen.anchor, line.anchor)
    if reason == "full":
        assert seen.anchor == line.target(line.anchor)
    if reason in ("full", "cold"):
        assert not line.waits(line.anchor, seen.anchor)


def check_cut_after_append(line: Line, seen: Seen, *, back: bool) -> None:
    """A full cut that could be made has been made, and beyond all patience the anchor moves wherever it can.

    Where it could also go back in the same step, it may have moved forward from there, and still not be further.
    """
    sent = len(line.sent_from(seen.anchor))
    target = line.target(seen.anchor) or 1
    if sent > line.rules.keep + line.rules.grow and target > seen.anchor:
        assert line.waits(seen.anchor, target)
    if sent >= line.rules.most and seen.anchor <= line.anchor and not back:
        assert not any(line.keeps(said.seq, seen.anchor) for said in line.sent_from(seen.anchor + 1))


def check_settled(line: Line, seen: Seen) -> None:
    """All work is done: every memo tells of its batch as it stands, and no cut waits for anything."""
    assert seen.work == {}
    for row, memo in zip([row for row in seen.memos if row["first_seq"] is not None], line.batches, strict=True):
        if memo.deleted:
            continue
        assert memo.status != "pending"
        if not memo.by_person:
            assert row["source_hash"] == row["current_hash"]
            words = WORD.findall(" ".join(text for _, _, _, text in line.source(memo)))
            assert WORD.findall(memo.text) in ([], words)
    sent = len(line.sent_from(seen.anchor))
    if seen.row["cut_waits"] and sent > line.rules.keep + line.rules.grow:
        assert (line.target(seen.anchor) or 1) <= seen.anchor


def check_inclusion(line: Line, seen: Seen, items: list[Json]) -> None:
    told = [(item["seq"], item["message_id"], item["status"], item["by"]) for item in items]
    assert told == [(said.seq, said.id, *line.inclusion(said, seen.anchor)) for said in line.living]
