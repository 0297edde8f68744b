"""What the demo writes about memories, also such as its own conversation does not lead to."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.demo.show_memory import word_book, word_diary, word_recap, word_scenes, word_summary
from app.demo.words import WIDTH, Calendar

TIMES = {1: datetime(2025, 12, 31, 23, 30, tzinfo=UTC), 8: datetime(2026, 1, 2, 8, 0, tzinfo=UTC)}
CALENDAR = Calendar(TIMES, "UTC")


def memo(**fields: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "first_seq": 1,
        "last_seq": 8,
        "after_seq": None,
        "status": "ready",
        "origin": "model",
        "model": "small-1",
        "error": None,
        "in_prompt": True,
        "highlights": [{"category": "turning_point", "text": "Kai told Mira who wrote the letters."}],
        **fields,
    }


def book(*memos: dict[str, Any], zone: str = "UTC", anchor_seq: int = 9) -> str:
    return "\n".join(word_book(memos, Calendar(TIMES, zone), anchor_seq))


def test_a_highlight_has_its_category_and_a_memo_its_author() -> None:
    text = book(memo())
    assert "written by small-1" in text
    assert "· Kai told Mira who wrote the letters. (turning point)" in text


DECLINED = {"kind": "declined", "reason": "the model refuses"}
STORY = {"kind": "story", "reason": "it goes on with the story"}


@pytest.mark.parametrize(
    ("refusals", "words"),
    [
        ([], "quoted, no model"),
        ([DECLINED, DECLINED], "quoted, the model declined"),
        ([STORY, DECLINED, STORY], "quoted, answers refused (story, declined)"),
    ],
)
def test_a_quoted_text_says_why_no_model_wrote_it(refusals: list[dict[str, str]], words: str) -> None:
    quoted: dict[str, Any] = {"origin": "extractive", "model": None, "refusals": refusals}
    assert book(memo(**quoted)).count(words) == 1
    assert scenes(scene(**quoted)).count(words) == 1
    assert diary(entry(), fold=folded(text="It rained.", entries=1, **quoted)).count(words) == 1
    for worded in (word_summary(version("“Hello.”", **quoted)), word_recap(version("“Hello.”", **quoted))):
        assert "\n".join(worded).count(words) == 1


def test_dates_are_those_of_the_chats_own_zone() -> None:
    assert "Wed 31 Dec 2025 – Fri 2 Jan 2026 · messages 1–8" in book(memo())
    assert "Thu 1 Jan – Fri 2 Jan 2026 · messages 1–8" in book(memo(), zone="Asia/Tokyo")


def test_a_memo_by_a_person_is_listed_after_its_message() -> None:
    text = book(memo(origin="person", first_seq=None, last_seq=None, after_seq=8))
    assert "after message 8 · written by a person" in text


def test_a_memo_that_could_not_be_made_says_why() -> None:
    text = book(memo(status="failed", error="no answer in 60 s", highlights=[], in_prompt=False))
    assert "— no memo —" in text
    assert "failed: no answer in 60 s" in text


def test_memos_are_grouped_by_their_status() -> None:
    text = book(memo(in_prompt=False), memo(number=2), memo(number=3, in_prompt=False, last_seq=8), anchor_seq=5)
    assert [line for line in text.splitlines() if line.startswith("— ")] == [
        "— waiting: their messages are still sent word for word —",
        "— in the prompt —",
        "— waiting: their messages are still sent word for word —",
    ]
    assert "— only in the book: no longer in the prompt —" in book(memo(in_prompt=False), anchor_seq=9)


def test_an_empty_book_says_so() -> None:
    assert "The memo book: 0 memos of 2 messages" in book()


def entry(**fields: Any) -> dict[str, Any]:
    return {
        "content": "He asked for my name.",
        "at_seq": 8,
        "origin": "tool",
        "edited": False,
        "in_prompt": True,
        "model": None,
        "created_at": "2026-01-02T09:00:00Z",
        **fields,
    }


def folded(**fields: Any) -> dict[str, Any]:
    return {"text": "", "entries": 0, "origin": None, "model": None, "in_prompt": True, **fields}


def diary(*entries: dict[str, Any], fold: dict[str, Any] | None = None) -> str:
    return "\n".join(word_diary("Mira", entries, fold or folded(), CALENDAR))


def test_a_diary_has_each_entry_with_its_day_and_place() -> None:
    text = diary(entry(), entry(content="He forgot it.", at_seq=9))
    assert "Mira's diary: 2 entries" in text
    assert "  Fri 2 Jan 2026 · after message 8\n      He asked for my name." in text
    assert "  after message 9\n      He forgot it." in text
    assert "older" not in text
    assert "today" not in text


def test_entries_by_other_authors_name_the_author() -> None:
    assert "after message 8 · written by a person" in diary(entry(origin="person"))
    assert "after message 8 · written for it by small-1" in diary(entry(origin="model", model="small-1"))


def test_older_entries_precede_the_text_they_are_folded_into() -> None:
    fold = folded(text="We met in the rain.\nHe has my name.", entries=1, origin="model", model="small-1")
    text = diary(entry(in_prompt=False, content="It rained."), entry(), fold=fold)
    positions = [
        text.index(found)
        for found in ("older: kept", "It rained.", "1 entry folded", "We met", "word for word", "asked for my name")
    ]
    assert positions == sorted(positions)
    assert "written by small-1" in text


def test_a_fold_that_waits_for_the_cut_is_not_said_to_be_shown() -> None:
    fold = folded(text="We met in the rain.", entries=1, origin="extractive")
    assert "1 entry folded into these lines of the prompt" in diary(entry(), fold=fold)
    assert "1 entry folded into these lines, in the prompt after the next cut" in diary(
        entry(), fold=fold | {"in_prompt": False}
    )


def test_an_empty_diary_says_where_entries_come_from() -> None:
    text = diary()
    assert "Mira's diary: 0 entries" in text
    assert "save_memory" in text


def version(text: str, **fields: Any) -> dict[str, Any]:
    known = {"version": 3, "kept_text": "", "first_seq": 1, "last_seq": 8, "origin": "model", "model": "small-1"}
    return {**known, "text": text, **fields}


def test_a_summary_says_what_it_covers_and_who_wrote_it() -> None:
    text = "\n".join(word_summary(version("They met. " * 30)))
    assert "The summary of messages 1–8: version 3, written by small-1" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_summary_without_a_model_is_a_list_of_quotations() -> None:
    text = "\n".join(word_summary(version("Mira: “Hello.”\nKai: “Late.”", origin="extractive", model=None)))
    assert "quoted, no model" in text
    assert "  · Mira: “Hello.”\n  · Kai: “Late.”" in text


def test_a_personal_summary_without_messages_names_no_range() -> None:
    text = "\n".join(word_summary(version("Long ago.", origin="person", first_seq=None, last_seq=None)))
    assert "The summary: version 3, written by a person" in text


def test_the_kept_text_of_a_summary_precedes_its_text() -> None:
    text = "\n".join(word_summary(version("They met again.", kept_text="They met at the pier.")))
    assert text.index("They met at the pier.") < text.index("They met again.")


def test_before_the_first_version_there_is_a_reason() -> None:
    nothing = version("", version=None)
    assert "none yet" in "\n".join(word_summary(nothing))
    assert "first scene that ends" in "\n".join(word_recap(nothing))


def scene(**fields: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "title": "The pier",
        "first_seq": 1,
        "last_seq": 8,
        "messages": 8,
        "open": False,
        "recap": "# Outcomes\n- They met.\n\n# Threads\n\n# State\n- place: the pier",
        "status": "ready",
        "closed_by": "model",
        "reason": "they left",
        "origin": "model",
        "model": "small-1",
        "error": None,
        **fields,
    }


def scenes(*listed: dict[str, Any], hidden: tuple[int, ...] = ()) -> str:
    return "\n".join(word_scenes(listed, CALENDAR, hidden))


def test_a_scene_has_its_title_its_recap_and_why_it_ends() -> None:
    text = scenes(scene())
    assert "The scenes: 1 closed, none open" in text
    assert "   1  Wed 31 Dec 2025 – Fri 2 Jan 2026 · messages 1–8 · written by small-1\n      The pier" in text
    assert "      Outcomes:\n        · They met.\n      State:\n        · place: the pier" in text
    assert "It ends with a break that the model found (they left)." in text
    assert "Threads" not in text


def test_the_open_scene_has_no_end_and_failures_have_a_reason() -> None:
    opened = scene(number=2, title=None, first_seq=9, last_seq=None, messages=3, open=True, recap=None, reason=None)
    text = scenes(scene(status="failed", error="no answer in 60 s", recap=None, title=None), opened)
    assert "1 closed, one open" in text
    assert "failed: no answer in 60 s" in text
    assert "messages 9–11 · still open" in text


def test_breaks_by_pause_are_explained_and_hiding_is_shown() -> None:
    text = scenes(scene(closed_by="time", reason="no model: 59 h passed here"), hidden=(1, 2, 3, 6))
    assert "Without a model, scenes end where the story paused longest." in text
    assert "It ends with a pause (no model: 59 h passed here)." in text
    assert "Messages 1–3, 6 are hidden." in text
    assert "Hidden" not in scenes(scene())


def test_breaks_by_pause_after_refusals_are_explained() -> None:
    refused = scene(closed_by="time", reason="no usable answer: 59 h passed here")
    hint = "The model's answers about where scenes end were refused; such scenes end where the story paused longest."
    for shown, without_model in (
        (scenes(refused), 0),
        (scenes(scene(closed_by="time", reason="no model: 9 h"), refused), 1),
    ):
        assert shown.replace("\n  ", " ").count(hint) == 1
        assert shown.count("Without a model") == without_model
    assert hint not in scenes(scene(closed_by="time", reason="no model: 9 h"))


def test_the_recap_omits_headings_without_content() -> None:
    lines = list(word_recap(version("# Outcomes\n- They met.\n\n# Threads\n\n# State")))
    assert lines[-2:] == ["  Outcomes:", "    · They met."]
