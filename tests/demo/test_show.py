"""What the demo writes about contexts that its own conversation does not lead to."""

from app.demo.bill import Account
from app.demo.show import word_context, word_savings


def test_an_empty_chat_has_an_empty_context_and_saves_nothing() -> None:
    context = {
        "tokens": 0,
        "max_tokens": 32_000,
        "segments": [],
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []},
    }
    text = "\n".join(word_context(context, []))
    assert "0 of at most 32,000 tokens" in text
    assert "known to the model" not in text
    assert "over 0 calls" in "\n".join(word_savings(Account()))


def test_a_long_segment_is_shortened_and_gaps_are_listed() -> None:
    context = {
        "tokens": 110,
        "max_tokens": 200,
        "segments": [
            {
                "name": "history",
                "tokens": 100,
                "text": "\n".join(f"line {number}" for number in range(20)),
                "cacheable": True,
                "sources": ["message:a", "message:b"],
            }
        ],
        "history": {"anchor_seq": 17},
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": [[1, 8], [16, 16]]},
    }
    lines = list(word_context(context, []))
    assert "  history          100  2 messages word for word, from number 17 on" in lines
    assert "  (overhead)        10  4 for each message and segment" in lines
    assert "  Messages 1–8, 16 are not sent, and no memo, summary or recap covers them." in lines
    assert lines[-8:] == [
        *(f"  line {number}" for number in range(4)),
        "  [… 13 more lines …]",
        *(f"  line {number}" for number in range(17, 20)),
    ]


def test_messages_are_counted_by_what_the_model_knows_of_them() -> None:
    context = {
        "tokens": 4,
        "max_tokens": 200,
        "segments": [],
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []},
    }
    scattered = [{"seq": seq, "status": "none" if seq % 2 else "recap"} for seq in range(1, 11)]
    lines = list(word_context(context, [*scattered, *({"seq": seq, "status": "verbatim"} for seq in (11, 12))]))
    assert lines[-3:] == [
        "         2     word for word · 11–12",
        "         5     by the running recap · 2, 4, 6, 8, …",
        "         5     not: no memory was made of them · 1, 3, 5, 7, …",
    ]


def test_messages_that_taught_something_are_counted_apart() -> None:
    context = {
        "tokens": 4,
        "max_tokens": 200,
        "segments": [],
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []},
    }
    by = {2: "memory:a", 3: "fact:b"}
    lines = list(word_context(context, [{"seq": seq, "status": "none", "by": by.get(seq)} for seq in range(1, 5)]))
    assert lines[-2:] == [
        "         2     not: but facts or memories were learnt from them · 2–3",
        "         2     not: no memory was made of them · 1, 4",
    ]


def test_messages_of_other_layers_are_counted_by_their_status() -> None:
    context = {
        "tokens": 4,
        "max_tokens": 200,
        "segments": [],
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []},
    }
    statuses = ("memo", "questions", "questions", "facts", "hidden")
    lines = list(word_context(context, [{"seq": seq, "status": status} for seq, status in enumerate(statuses, 1)]))
    assert lines[-4:] == [
        "         1     by a memo · 1",
        "         1     by facts · 4",
        "         2     by questions · 2–3",
        "         1     not: they are hidden · 5",
    ]
