from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transfer.formats import read_transcript, sniff
from app.transfer.jsonl import read_jsonl
from app.transfer.sillytavern import read_sillytavern
from app.transfer.transcript import Transcript, TranscriptError

ROLES = {"user", "assistant", "system", "tool", "narrator"}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
JSONL_LINES = st.fixed_dictionaries(
    {"role": st.sampled_from(sorted(ROLES)), "content": st.text()},
    optional=dict.fromkeys(("id", "name", "kind", "sent_at", "importance", "tool_calls", "metadata"), VALUES),
)
SILLYTAVERN_LINES = st.fixed_dictionaries(
    {"mes": st.text()},
    optional={
        "extra": st.fixed_dictionaries({"type": st.sampled_from(["narrator", "comment", "help", ""])}) | VALUES,
        **dict.fromkeys(("name", "is_user", "is_system", "send_date", "swipes", "swipe_id"), VALUES),
    },
)


def file_of(rows: list[dict[str, Any]]) -> str:
    return "\n".join(orjson.dumps(row).decode() for row in rows)


FILES = st.lists(JSONL_LINES | SILLYTAVERN_LINES | st.dictionaries(st.text(), VALUES, max_size=2), max_size=4).map(
    file_of
)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ('{"user_name": "Nell", "character_name": "Quill"}', "sillytavern"),
        ('\ufeff\r\n{"chat_metadata": {}}\r\n', "sillytavern"),
        ('{"name": "Nell", "is_user": true, "mes": "Hello?"}', "sillytavern"),
        ('{"chat": {}}', "jsonl"),
        ('{"role": "user", "content": "Hello?"}', "jsonl"),
        ("Dear diary,", "jsonl"),
        ("[]", "jsonl"),
        ("", "jsonl"),
    ],
)
def test_the_format_is_detected_from_the_first_line(text: str, format_: str) -> None:
    assert sniff(text) == format_


def test_a_file_is_read_in_its_own_format() -> None:
    ours = '{"role": "user", "content": "Hello?"}'
    theirs = '{"name": "Nell", "is_user": true, "mes": "Hello?"}'
    assert read_transcript(ours) == read_jsonl(ours)
    assert read_transcript(theirs) == read_sillytavern(theirs)


@given(st.text() | FILES)
def test_any_text_is_refused_in_one_line_or_can_be_appended(text: str) -> None:
    for read in (read_transcript, read_jsonl, read_sillytavern):
        outcome = outcome_of(read, text)
        if isinstance(outcome, Transcript):
            assert_can_be_appended(outcome)
        else:
            assert len(str(outcome).splitlines()) == 1
            assert 1 <= outcome.line <= text.count("\n") + 1


def outcome_of(read: Callable[[str], Transcript], text: str) -> Transcript | TranscriptError:
    try:
        return read(text)
    except TranscriptError as error:
        return error


def assert_can_be_appended(transcript: Transcript) -> None:
    ids = [message["id"] for message in transcript.messages]
    assert len(set(ids)) == len(ids)
    assert set(transcript.hidden) <= set(ids)
    for message in transcript.messages:
        assert message["role"] in ROLES
        assert message["content"].strip() or message["tool_calls"]
        assert "\0" not in message["content"]
        assert datetime.fromisoformat(message.get("sent_at", "2025-09-06T18:43Z")).tzinfo
    assert orjson.dumps(transcript.messages)
