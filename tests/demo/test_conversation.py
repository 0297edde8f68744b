"""The conversation of the demo: it has to give memory something to do, and to agree with itself."""

import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import app.demo
from app.chats.settings import effective
from app.demo.tool_calls import BLOCK_TOOL, DIARY_TOOL, FACT_TOOL, ToolCall, take_calls
from app.diary.settings import DiarySettings
from app.diary.wording import count_lines, word_entry
from app.kit.tokens import count_tokens
from app.registry import LAYERS
from app.scenes import extractive as scene_quotes
from app.scenes.answers import render_recap
from app.summarising.transcript import Utterance
from app.summary import extractive as summary_quotes
from app.tools.toolbox import get_tool
from app.transfer.formats import read_transcript

TRANSCRIPT = read_transcript((Path(app.demo.__file__).parent / "conversation.jsonl").read_text("utf-8"))
MOMENTS = take_calls(TRANSCRIPT.messages)
MESSAGES = [moment for moment in MOMENTS if not isinstance(moment, ToolCall)]
CALLS = [moment for moment in MOMENTS if isinstance(moment, ToolCall)]
ENTRIES = [call for call in CALLS if call.tool == DIARY_TOOL]
TIMES = [datetime.fromisoformat(message["sent_at"]) for message in MESSAGES]

DATED = re.compile(r"([A-Z][a-z]+day) (\d+ (?:September|October|November))")


def test_it_is_long_enough_for_a_memo_to_leave_the_window() -> None:
    assert len(MESSAGES) == 160
    assert TRANSCRIPT.skipped == 0
    assert [message["id"] for message in MESSAGES] == [f"m{number:03}" for number in range(1, 161)]


def test_its_chat_says_who_speaks_and_has_valid_settings() -> None:
    assert TRANSCRIPT.chat.keys() >= {"characters", "user_persona", "system_prompt", "time_zone", "language"}
    assert effective(TRANSCRIPT.chat["settings"]).preset == "memo"
    (quill,) = TRANSCRIPT.chat["characters"]
    spoke = {(message["role"], message.get("name")) for message in MESSAGES}
    assert spoke == {("user", "Nell"), ("assistant", quill["name"]), ("narrator", None)}


def test_it_goes_on_for_seven_weeks_with_pauses_of_days() -> None:
    pauses = [later - earlier for earlier, later in pairwise(TIMES)]
    assert min(pauses) >= timedelta(0)
    assert timedelta(weeks=6) <= TIMES[-1] - TIMES[0] <= timedelta(weeks=8)
    assert sum(pause > timedelta(days=1) for pause in pauses) >= 12


def test_messages_are_short_and_long_and_play_a_role() -> None:
    lengths = [len(message["content"].split()) for message in MESSAGES]
    assert 3 <= min(lengths) < 10
    assert 80 < max(lengths) <= 120
    assert sum("*" in message["content"] for message in MESSAGES) > 50


@pytest.mark.parametrize(
    "told",
    [
        "Row Me Home by Seven",  # the tune that only he knows
        "swallow",  # the key, given, lost and found
        "two on the second of October|8:31",  # the birthday
        "[Bb]oth feet",  # the promise
        "in pencil|in ink",  # the log
        "thinks better of it",
        "Twenty-six and thirty-one",  # the secret
        "third of November|on the third",  # the night when the clock stopped
        "ladder",
        "council",
    ],
)
def test_early_details_come_back_much_later(told: str) -> None:
    seqs = [seq for seq, message in enumerate(MESSAGES, start=1) if re.search(told, message["content"])]
    assert seqs[-1] - seqs[0] >= 16


def test_every_day_of_the_week_is_that_of_its_date() -> None:
    found = [match for message in MESSAGES for match in DATED.finditer(message["content"])]
    assert len(found) >= 5
    for match in found:
        assert datetime.strptime(f"{match[2]} 2025 +0000", "%d %B %Y %z").strftime("%A") == match[1]


@pytest.mark.parametrize("entry", [r"6 September, (\d\d:\d\d)", r"24 October, (\d\d:\d\d)"])
def test_each_log_entry_has_the_time_of_its_message(entry: str) -> None:
    written: list[tuple[dict[str, Any], str]] = [
        (message, match[1]) for message in MESSAGES if (match := re.search(entry, message["content"]))
    ]
    ((message, time),) = written
    assert f"{datetime.fromisoformat(message['sent_at']):%H:%M}" == time


def test_the_keepers_diary_is_long_enough_to_be_folded() -> None:
    (quill,) = TRANSCRIPT.chat["characters"]
    entries = [
        get_tool(LAYERS, "save_memory").arguments.model_validate(call.arguments).model_dump() for call in ENTRIES
    ]
    lines = [count_lines(word_entry(entry["content"], "")) for entry in entries]
    assert {call.character for call in ENTRIES} == {quill["name"]}
    assert sum(lines) + len(lines) - 1 > DiarySettings.of(effective({"preset": "diary"})).lines
    assert len({entry["content"] for entry in entries}) == len(entries) >= 25
    assert all(re.search(r"\b(I|me|my)\b", entry["content"]) for entry in entries)


def test_diary_calls_precede_a_reply_and_are_never_adjacent() -> None:
    moments = [one for one in MOMENTS if not isinstance(one, ToolCall) or one.tool == DIARY_TOOL]
    for before, moment, after in zip(moments, moments[1:], moments[2:], strict=False):
        if isinstance(moment, ToolCall):
            assert not isinstance(before, ToolCall)
            assert not isinstance(after, ToolCall)
            assert before["role"] != "assistant"


def test_every_call_is_made_before_a_reply_of_quill() -> None:
    """A call before a message of the user would be dropped."""
    following: Any = None
    for moment in reversed(MOMENTS):
        if not isinstance(moment, ToolCall):
            following = moment
        else:
            assert moment.character == "Quill"
            assert (following["role"], following["name"]) == ("assistant", "Quill")


def test_facts_change_in_the_course_of_the_story() -> None:
    values: dict[str, list[str]] = {}
    for call in CALLS:
        if call.tool == FACT_TOOL:
            noted = get_tool(LAYERS, FACT_TOOL).arguments.model_validate(call.arguments).model_dump()
            values.setdefault(noted["key"], []).append(noted["value"])
    assert all(len(set(one)) == len(one) for one in values.values())
    assert len(values) >= 4
    assert sum(len(one) >= 3 for one in values.values()) >= 2


def test_blocks_are_written_appended_and_corrected() -> None:
    texts: dict[str, str] = {}
    operations = set()
    for call in CALLS:
        if call.tool == BLOCK_TOOL:
            edit = get_tool(LAYERS, BLOCK_TOOL).arguments.model_validate(call.arguments).model_dump()
            label, content, pattern = edit["block"], edit["content"], edit["search_pattern"]
            operations.add(edit["operation"])
            former = texts.get(label, "")
            assert pattern in former
            texts[label] = {
                "replace": content,
                "append": f"{former}\n{content}",
                "search_replace": former.replace(pattern, content),
            }[edit["operation"]]
    assert operations == {"replace", "append", "search_replace"}
    assert set(texts) == {"persona", "user", "context"}


UTTERANCES = [
    Utterance(seq, message["role"], message.get("name", "Narrator"), message["content"])
    for seq, message in enumerate(MESSAGES, start=1)
]
TURNING_POINT = "Marten died in that bunk on the third of November"


def test_an_extractive_summary_keeps_the_turning_point() -> None:
    told = ""
    for first in range(0, len(UTTERANCES), 7):
        told = summary_quotes.fold_quotes(told, UTTERANCES[first : first + 7], count_tokens=count_tokens)
    assert TURNING_POINT in told
    assert count_tokens(told) <= summary_quotes.SUMMARY_TOKENS


def test_the_running_recap_keeps_the_turning_point() -> None:
    told = ""
    for first in range(0, len(UTTERANCES), 13):
        scene = scene_quotes.quote_scene(UTTERANCES[first : first + 13], count_tokens=count_tokens)
        assert scene is not None
        told = scene_quotes.fold_quotes(told, [render_recap(scene)], count_tokens=count_tokens)
    assert TURNING_POINT in told
    assert "# Threads" not in told
    assert count_tokens(told) <= scene_quotes.RECAP_TOKENS
