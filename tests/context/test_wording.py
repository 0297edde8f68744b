from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.context.segments import TranscriptStyle
from app.context.wording import word_line, word_message, word_segment
from tests.context.arrangements import call, entry, segment

PLAIN = TranscriptStyle()
INLINE = TranscriptStyle(timestamps="inline", time_zone="Asia/Tokyo", character="Sakura", user_name="Mira")
NEW_YEAR = datetime(2024, 12, 31, 20, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("role", "name", "said"),
    [
        ("user", None, "Hello."),
        ("user", "Anna", "Anna: Hello."),
        ("assistant", None, "Hello."),
        ("assistant", "Kai", "Kai: Hello."),
        ("narrator", None, "[Narrator] Hello."),
        ("narrator", "Storm", "[Storm] Hello."),
        ("system", None, "[System] Hello."),
        ("tool", "look", "[look] Hello."),
        ("tool", None, "[tool] Hello."),
    ],
)
def test_a_lost_name_or_role_is_written_before_the_text(role: str, name: str | None, said: str) -> None:
    assert word_message(entry(1, role, name=name), PLAIN) == said


def test_the_only_characters_name_is_not_written() -> None:
    style = TranscriptStyle(character="Sakura")
    assert word_message(entry(1, "assistant", name="Sakura"), style) == "Hello."
    assert word_message(entry(1, "assistant", name="Kai"), style) == "Kai: Hello."
    assert word_message(entry(1, "user", name="Sakura"), style) == "Sakura: Hello."


def test_a_message_that_only_calls_a_tool_has_no_words_to_stamp() -> None:
    assert word_message(entry(1, "assistant", text=""), INLINE) == ""


def test_a_line_always_says_who_speaks() -> None:
    assert word_line(entry(1, "user"), PLAIN) == "User: Hello."
    assert word_line(entry(1, "assistant"), PLAIN) == "Assistant: Hello."
    assert word_line(entry(1, "assistant"), TranscriptStyle(character="Sakura")) == "Sakura: Hello."
    assert word_line(entry(1, "user"), TranscriptStyle(user_name="Mira")) == "Mira: Hello."


def test_inline_timestamps_are_local_and_before_the_speaker() -> None:
    assert word_message(entry(1, "assistant", sent_at=NEW_YEAR), INLINE) == "[01/01 05:15] Sakura: Hello."
    assert word_message(entry(1, "user", sent_at=NEW_YEAR), INLINE) == "[01/01 05:15] Mira: Hello."
    assert word_message(entry(1, "narrator", sent_at=NEW_YEAR), INLINE) == "[01/01 05:15] [Narrator] Hello."


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_first_and_the_last_moment_have_a_timestamp_too(zone: str, at: datetime) -> None:
    said = word_message(entry(1, sent_at=at), replace(INLINE, time_zone=zone))
    assert said.endswith("] Mira: Hello.")


def test_a_name_cannot_pose_as_another_message() -> None:
    assert word_message(entry(1, name=" A\nUser: B "), PLAIN) == "A User: B: Hello."
    assert word_message(entry(1, name=" \n"), PLAIN) == "Hello."


def test_tool_calls_are_rendered_after_the_text() -> None:
    said = entry(1, "assistant", "Wait.", tool_calls=[call("0", "look", '{"at": "sky"}'), call("1", "listen")])
    assert word_message(said, PLAIN) == 'Wait.\n[calls look {"at": "sky"}]\n[calls listen {}]'
    assert word_message(said._replace(text=""), PLAIN) == '[calls look {"at": "sky"}]\n[calls listen {}]'


def test_a_segment_is_marked_with_a_role_that_would_be_lost() -> None:
    note = segment("note", "A note.", role="user")
    assert word_segment(note, "user") == "A note."
    assert word_segment(note, "system") == "[User] A note."
