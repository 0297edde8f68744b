"""Comparison of a line with its reference, after each step and when all work is done."""

import orjson

from app.chats.hashes import content_digest, range_hash
from app.passages.handlers import INDEX
from tests.oracle.misbehaviour import repeats_misbehaviour
from tests.oracle.reference.lines import Line, Memo, Message
from tests.oracle.service import WORD, Snapshot
from tests.talk import Json


def check_line(line: Line, snapshot: Snapshot) -> None:
    """Check everything that must hold after each step."""
    assert snapshot.row["line"] == line.id
    check_messages(line, snapshot)
    check_counters(line, snapshot)
    check_batches(line, snapshot)
    check_book(line, snapshot)
    check_work(line, snapshot)
    check_window(line, snapshot)
    check_context(line, snapshot)
    check_anchor(line, snapshot)
    check_sessions(line, snapshot)


def check_sessions(line: Line, snapshot: Snapshot) -> None:
    """Check where sessions begin and how many messages they have."""
    found = snapshot.sessions
    assert [(item["first_seq"], item["reason"]) for item in found] == line.sessions
    ends = [*(first_seq - 1 for first_seq, _ in line.sessions[1:]), None]
    assert [item["last_seq"] for item in found] == ends
    assert [item["messages"] for item in found] == [
        sum(first_seq <= message.seq <= (end or line.head) for message in line.not_deleted)
        for (first_seq, _), end in zip(line.sessions, ends, strict=True)
    ]


def check_messages(line: Line, snapshot: Snapshot) -> None:
    assert [(row["seq"], row["message_id"], row["deleted"]) for row in snapshot.messages] == [
        (seq, message.id, message.deleted) for seq, message in enumerate(line.messages, start=1)
    ]
    assert [_actual_message(item) for item in snapshot.listed] == [
        _expected_message(line, message) for message in line.not_deleted
    ]


def _actual_message(item: Json) -> Json:
    names = ("seq", "id", "role", "name", "kind", "content", "tokens", "swipes", "selected_swipe")
    marks = ("excluded", "pinned", "hidden_by", "edited", "memo_id")
    return {name: item[name] for name in (*names, *marks)}


def _expected_message(line: Line, message: Message) -> Json:
    memo = next((m for m in line.book if m.batch and m.batch[0] <= message.seq <= m.batch[1]), None)
    return {
        "seq": message.seq,
        "id": message.id,
        "role": message.role,
        "name": line.name_of(message),
        "kind": message.kind,
        "content": message.text,
        "tokens": message.tokens,
        "swipes": message.texts,
        "selected_swipe": message.selected,
        "excluded": message.excluded,
        "pinned": message.pinned,
        "hidden_by": message.hidden_by,
        "edited": message.edited,
        "memo_id": memo.id if memo else None,
    }


def check_counters(line: Line, snapshot: Snapshot) -> None:
    row = snapshot.row
    assert row["head_seq"] == line.head
    assert row["message_count"] == len(line.not_deleted)
    assert row["token_count"] == line.tokens()
    assert row["turn_count"] == line.turns()
    assert row["memo_count"] == len(line.book)
    assert row["memo_number"] == line.last_number
    assert row["history_messages"] == len(line.sent_from(snapshot.anchor))


def check_batches(line: Line, snapshot: Snapshot) -> None:
    """Check the batches, including those of deleted memos, and that each hash is that of the current messages."""
    stored = [row for row in snapshot.memos if row["first_seq"] is not None]
    assert [(row["first_seq"], row["last_seq"], row["number"], row["deleted"]) for row in stored] == [
        (*(memo.batch or ()), memo.number, memo.deleted) for memo in line.batches
    ]
    for row, memo in zip(stored, line.batches, strict=True):
        assert row["id"] == memo.id
        assert row["current_hash"] == hash_of(line, memo)


def hash_of(line: Line, memo: Memo) -> bytes:
    return range_hash((seq, content_digest(role, name, text)) for seq, role, name, text in line.current_source(memo))


def check_book(line: Line, snapshot: Snapshot) -> None:
    assert [_actual_memo(item) for item in snapshot.book] == _expected_book(line, snapshot.anchor)
    assert not [item for item in snapshot.book if repeats_misbehaviour(item["text"])]


def check_unchanged(line: Line, listed: list[Json], book: list[Json]) -> None:
    """Check that the messages and memos of a line that is not current have not changed."""
    assert [_actual_message(item) for item in listed] == [
        _expected_message(line, message) for message in line.not_deleted
    ]
    assert [_actual_memo(item) for item in book] == _expected_book(line, line.anchor)


def _expected_book(line: Line, anchor: int) -> list[Json]:
    shown = line.memos_in_prompt(anchor)
    return [
        {
            "id": memo.id,
            "number": memo.number,
            "first_seq": memo.batch[0] if memo.batch else None,
            "last_seq": memo.batch[1] if memo.batch else None,
            "after_seq": None if memo.batch else memo.after_seq,
            "first_message_id": line.first_message_id(memo),
            "status": "failed" if memo.status == "pending" and memo.failed else memo.status,
            "stale": line.is_stale(memo),
            "text": memo.text,
            "pinned": memo.pinned,
            "edited": memo.edited,
            "origin_is_person": memo.by_person,
            "in_prompt": memo in shown,
        }
        for memo in line.book
    ]


def _actual_memo(item: Json) -> Json:
    names = ("id", "number", "first_seq", "last_seq", "after_seq", "first_message_id", "status", "stale", "text")
    by_person = item["origin"] == "person"
    return {name: item[name] for name in (*names, "pinned", "edited", "in_prompt")} | {"origin_is_person": by_person}


def check_work(line: Line, snapshot: Snapshot) -> None:
    """Check that exactly the memos that need a new text have work, and that no work failed with a bug.

    A long chat can also have work for its index of words, which the reference does not describe.
    """
    assert {key: row["failed"] for key, row in snapshot.work.items() if key != INDEX} == {
        memo.id: memo.failed for memo in line.batches if line.needs_work(memo)
    }
    assert not [row["error"] for row in snapshot.work.values() if "unexpected" in (row["error"] or "")]


def check_window(line: Line, snapshot: Snapshot) -> None:
    column = {"memos": [], "pinned": [], "gaps": [], **(snapshot.row["memo_window"] or {})}
    assert column == orjson.loads(orjson.dumps(snapshot.window))
    shown = line.memos_in_prompt(snapshot.anchor)
    assert [entry["id"] for entry in column["memos"]] == [memo.id for memo in shown if not memo.pinned]
    assert [entry["id"] for entry in column["pinned"]] == [memo.id for memo in shown if memo.pinned]
    dates = {memo.id: _word_date(line, memo, snapshot) for memo in shown}
    for entry in (*column["memos"], *column["pinned"]):
        assert entry["text"].startswith(dates[entry["id"]])
    assert {seq for first, last in column["gaps"] for seq in range(first, last + 1)} == line.gaps(snapshot.anchor)


def _word_date(line: Line, memo: Memo, snapshot: Snapshot) -> str:
    """Return the beginning of the memo's text in the prompt; all messages are of one year, in UTC."""
    sent = {item["seq"]: item["sent_at"] for item in snapshot.listed}
    days = [sent[message.seq][5:10].replace("-", "/") for message in line.eligible(*(memo.batch or (1, 0)))]
    if not days:
        return memo.text
    return f"[{min(days)}]\n" if min(days) == max(days) else f"[{min(days)}–{max(days)}]\n"


def check_context(line: Line, snapshot: Snapshot) -> None:
    """Check that the context contains the expected words in order, and none from stale or deleted texts."""
    pinned = [message.text for message in line.pinned(snapshot.anchor)]
    memos = [memo.text for memo in line.memos_in_prompt(snapshot.anchor)]
    history = [message.text for message in line.sent_from(snapshot.anchor)]
    assert snapshot.words == WORD.findall("\n".join([*pinned, *memos, *history]))
    assert snapshot.context["history"]["messages"] == len(history)
    assert snapshot.context["memo_window"]["memos"] == len(memos)


def check_anchor(line: Line, snapshot: Snapshot) -> None:
    """Check that the history has at least `keep` messages and begins at an edge or a forced cut."""
    cut = snapshot.row["last_cut"]
    assert snapshot.anchor == (cut["at_seq"] if cut else 1)
    assert snapshot.anchor == 1 or len(line.sent_from(snapshot.anchor)) >= line.settings.keep
    edges = {1, *(memo.batch[1] + 1 for memo in line.batches if memo.batch)}
    assert snapshot.anchor in edges or cut["reason"] == "forced"


def check_moves(line: Line, snapshot: Snapshot, *, may_advance: bool, may_go_back: bool) -> None:
    """Check a move of the anchor since the last snapshot.

    If the step may move the anchor in both directions, a rewind may have come before an append that formed new edges;
    its target is then not checked.
    """
    if snapshot.anchor == line.anchor:
        return
    assert may_advance if snapshot.anchor > line.anchor else may_go_back
    reason = snapshot.row["last_cut"]["reason"]
    if reason == "rewind" and not may_advance:
        assert snapshot.anchor == (line.cut_target(1) or 1)
    elif reason != "rewind":
        assert line.can_cut(snapshot.anchor, line.anchor)
    if reason == "full":
        was_rewound = snapshot.anchor < line.anchor
        assert snapshot.anchor == line.cut_target(1 if was_rewound else line.anchor)
    if reason in ("full", "cold", "session"):
        assert not line.cut_waits(line.anchor, snapshot.anchor)


def check_cut_after_append(line: Line, snapshot: Snapshot, *, may_go_back: bool) -> None:
    """Check that a possible full cut was made, and that a history of `most` messages was cut wherever possible.

    If the step may also move the anchor back, the anchor may be at or before its last position in spite of a cut.
    """
    sent = len(line.sent_from(snapshot.anchor))
    target = line.cut_target(snapshot.anchor) or 1
    if sent > line.settings.keep + line.settings.grow and target > snapshot.anchor:
        assert line.cut_waits(snapshot.anchor, target) or _waits_for_parted_edge(line, snapshot, target)
    if sent >= line.settings.most and snapshot.anchor <= line.anchor and not may_go_back:
        assert not any(
            line.can_cut(message.seq, snapshot.anchor)
            for message in line.sent_from(snapshot.anchor)
            if message.seq > snapshot.anchor
        )


def _waits_for_parted_edge(line: Line, snapshot: Snapshot, target: int) -> bool:
    """Whether a cut still waits for an edge after `target` that now separates a tool call from its result.

    The result came while the cut waited. The service decides again when the memo is made for which the cut waits.
    """
    edges = [memo.batch[1] + 1 for memo in line.batches if memo.batch]
    return snapshot.row["cut_waits"] and any(
        edge > target
        and line.cut_waits(snapshot.anchor, edge)
        and not line.can_cut(edge, snapshot.anchor)
        and len(line.sent_from(edge)) >= line.settings.keep
        for edge in edges
    )


def check_settled(line: Line, snapshot: Snapshot) -> None:
    """Check a line without due work: each memo covers the current messages of its batch, and no cut waits."""
    assert snapshot.work == {}
    for row, memo in zip([row for row in snapshot.memos if row["first_seq"] is not None], line.batches, strict=True):
        if memo.deleted:
            continue
        assert memo.status != "pending"
        if not memo.by_person:
            assert row["source_hash"] == row["current_hash"]
            words = WORD.findall(" ".join(text for _, _, _, text in line.current_source(memo)))
            found = WORD.findall(memo.text)
            assert set(found) <= set(words) if memo.partial else found in ([], words)
    sent = len(line.sent_from(snapshot.anchor))
    if snapshot.row["cut_waits"] and sent > line.settings.keep + line.settings.grow:
        assert (line.cut_target(snapshot.anchor) or 1) <= snapshot.anchor


def check_inclusion(line: Line, snapshot: Snapshot, items: list[Json]) -> None:
    found = [(item["seq"], item["message_id"], item["status"], item["by"]) for item in items]
    assert found == [
        (message.seq, message.id, *line.inclusion(message, snapshot.anchor)) for message in line.not_deleted
    ]
