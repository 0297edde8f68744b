"""What is read out of a model's answers about scenes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.scenes.answer_parts import MAX_TITLE_CHARS
from app.scenes.answers import SceneText, parse_recap, parse_scene_recap, render_recap
from app.scenes.detection.breaks import MAX_REASON_CHARS, parse_scene_break
from app.summarising.answer_text import MAX_ANSWER_CHARS, UnusableAnswer

# --- where a scene ends ---


@pytest.mark.parametrize(
    ("answer", "break_at"),
    [
        ('{"break_at": 12, "reason": "Morning."}', 12),
        ('{"break_at": null, "reason": "Morning."}', None),
        ('```json\n{"break_at": 12, "reason": "Morning."}\n```', 12),
        ('Here you go:\n{"break_at": "12", "reason": "Morning."}\nDone.', 12),
        ('{"break_at": 12.0, "reason": "Morning."}', 12),
        ('{"break_at": "#12", "reason": "Morning."}', 12),
        ('{"break_at": "null", "reason": "Morning."}', None),
        ('{"break_at": "None", "reason": "Morning."}', None),
        ('{"BreakAt": 12, "reason": "Morning."}', 12),
        ('{"reason": "Morning.", "break at": 12}', 12),
        ("{'break_at': 12, 'reason': 'Morning.'}", 12),
        ("{'break_at': None, 'reason': 'Morning.'}", None),
        ('{"break_at": 12, "reason": "Morning.",}', 12),
        ("break_at: 12\nreason: Morning.", 12),
        ("**break_at**: null\n**reason**: Morning.", None),
        ('<think>break_at is 9? {"break_at": 9}</think>{"break_at": 12, "reason": "Morning."}', 12),
        ('{"seq": 3, "message": "{"}\n{"break_at": 12, "reason": "Morning."}', 12),
        ('{"break_at": 12, "reason": "Morning."}\n{"break_at": 12, "reason": "Still."}', 12),
        ('{"answer": {"break_at": 12, "reason": "Morning."}}', 12),
    ],
)
def test_a_break_is_read_however_it_is_written(answer: str, break_at: int | None) -> None:
    assert parse_scene_break(answer) == (break_at, "Morning.")


@pytest.mark.parametrize(
    ("answer", "break_at"),
    [("12", 12), ("null", None), ("None.", None), ('{"break_at": 3}', 3), ('{"break_at": ""}', None)],
)
def test_a_break_without_a_reason_is_a_break(answer: str, break_at: int | None) -> None:
    assert parse_scene_break(answer) == (break_at, "")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        "The scene ends when Mira leaves.",
        '{"break_at": true, "reason": "x"}',
        '{"break_at": -3}',
        '{"break_at": 1.5}',
        '{"break_at": 1e300}',
        '{"break_at": "the third"}',
        '{"break_at": [12]}',
        '{"break_at": 12}{"break_at": 13}',
        '{"break_at": null}{"break_at": 13}',
        f'{{"break_at": {"9" * 30}}}',
        "break_at: 1.5",
        "<think>12",
        "12 or 13",
    ],
)
def test_an_answer_without_a_single_break_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_scene_break(answer)


def test_a_reason_is_one_line_of_bounded_length() -> None:
    _, reason = parse_scene_break('{"break_at": 1, "reason": "A\\n\\u0000b ' + "word " * 200 + '"}')
    assert reason.startswith("A b word")
    assert len(reason) <= MAX_REASON_CHARS


BREAK_SIGNS = st.sampled_from([
    '{"break_at": ', "break_at", "12", "null", "}", "{", '"', "'", ", ", '"reason": "', "\n", "\x00", "-", ".", "1e9",
    "true", "[", "]", "```", "<think>", "</think>", ":", "\\u0000", "\ud800", "٣",
])  # fmt: skip


@given(st.one_of(st.text(), st.lists(BREAK_SIGNS, max_size=20).map("".join)))
def test_any_answer_about_a_break_is_read_or_unusable(answer: str) -> None:
    try:
        break_at, reason = parse_scene_break(answer)
    except UnusableAnswer:
        return
    assert break_at is None or 0 <= break_at < 2**63
    assert "\x00" not in reason
    assert reason.encode().decode() == reason
    assert reason == " ".join(reason.split())


@pytest.mark.parametrize("piece", ["{", '{"a":', "[", '{"break_at": 1}', "break_at:", "<think>", "'", "9"])
def test_an_endless_answer_about_a_break_is_read_or_unusable(piece: str) -> None:
    try:
        break_at, _ = parse_scene_break(piece * 50_000)
    except UnusableAnswer:
        return
    assert break_at == 1


# --- what remains of a scene ---

READ = SceneText(
    title="The key",
    outcomes="- Mira found the key.\n- Jonas laughed.",
    threads="- Jonas promised to come.",
    state="- place: the harbour\n- Mira: has the key",
)
ASKED = """\
Title: The key
# Outcomes
- Mira found the key.
- Jonas laughed.
# Threads
- Jonas promised to come.
# State
- place: the harbour
- Mira: has the key"""


@pytest.mark.parametrize(
    "answer",
    [
        ASKED,
        f"Here is the recap:\n\n{ASKED}\n\nLet me know if you want more!",
        f"```markdown\n{ASKED}\n```",
        f"<think>\n# Outcomes\n- no\n</think>\n{ASKED}",
        ASKED.replace("\n", "\n\n"),
        ASKED.replace("# ", "### ").replace("Outcomes", "OUTCOMES"),
        ASKED.replace("# Outcomes", "**Outcomes**")
        .replace("# Threads", "**Threads:**")
        .replace("# State", "## **State**"),
        ASKED.replace("# ", "")
        .replace("Outcomes", "Outcomes:")
        .replace("Threads", "threads:")
        .replace("State", "State:"),
        ASKED.replace("# Outcomes", "1. Outcomes").replace("# Threads", "2. Threads:").replace("# State", "3) State"),
        ASKED.replace("# Outcomes", "## What happened")
        .replace("# Threads", "## Open threads")
        .replace("# State", "## Status"),
        ASKED.replace("# Outcomes", "# Ergebnisse")
        .replace("# Threads", "# Offene Fäden")
        .replace("# State", "# Stand"),
        ASKED.replace("- ", "* "),
        ASKED.replace("- ", "• "),
        ASKED.replace("- place:", "- **place:**").replace("- Mira:", "- **Mira**:"),
        ASKED.replace("Title: The key", "# Title: The key"),
        ASKED.replace("Title: The key", "**Title:** “The key”"),
        ASKED.replace("Title: The key", "# Title\nThe key"),
        ASKED.replace("Title: The key", "# The key"),
        ASKED.replace("Title: The key", "**The key**"),
        ASKED.replace("Title: The key", "标题：The key"),
        '{"title": "The key", "outcomes": ["Mira found the key.", "Jonas laughed."],'
        ' "threads": "Jonas promised to come.", "state": {"place": "the harbour", "Mira": "has the key"}}',
    ],
)
def test_a_recap_is_read_however_its_parts_are_marked(answer: str) -> None:
    assert parse_scene_recap(answer) == READ


def test_a_repeated_label_keeps_its_position_and_last_value() -> None:
    read = parse_scene_recap("# Outcomes\n- A.\n# State\n- place: at sea\n- time: noon\n- Place: the harbour")
    assert read.state == "- Place: the harbour\n- time: noon"


GROUPED = """\
- Mira:
  - place: the pier
  - arm: broken
- Jonas:
  - place: the mill"""


@pytest.mark.parametrize(
    "state",
    [
        GROUPED,
        GROUPED.replace("- Mira", "- **Mira**").replace("- Jonas", "- **Jonas**"),
        GROUPED.replace("  - ", "    * "),
        GROUPED.replace("- Mira", "Mira").replace("- Jonas", "Jonas").replace("  - ", "- "),
        GROUPED.replace("- Mira:", "**Mira**").replace("- Jonas:", "**Jonas**").replace("  - ", "- "),
        GROUPED.replace("- Mira:", "## Mira").replace("- Jonas:", "## Jonas").replace("  - ", "- "),
        GROUPED.replace("- Mira:", "## Mira").replace("- Jonas:", "## Jonas").replace("  - ", ""),
    ],
)
def test_notes_in_a_group_per_character_are_prefixed_with_names(state: str) -> None:
    read = parse_scene_recap(f"# Outcomes\n- A.\n# State\n{state}")
    assert read.state == "- Mira, place: the pier\n- Mira, arm: broken\n- Jonas, place: the mill"
    assert parse_recap(render_recap(read)) == render_recap(read)


@pytest.mark.parametrize(
    ("state", "read"),
    [
        ("- Mira:\n  - mood: calm\n  - place: the pier", "- Mira, mood: calm\n- Mira, place: the pier"),
        ("weather: rain\nMira:\n- mood: calm", "weather: rain\n- Mira, mood: calm"),
        ("At the end:\n- Mira:\n  - mood: calm\n- time: noon", "At the end:\n- Mira, mood: calm\n- time: noon"),
    ],
)
def test_notes_in_a_single_group_are_prefixed_with_its_name(state: str, read: str) -> None:
    parsed = parse_scene_recap(f"# Outcomes\n- A.\n# State\n{state}")
    assert parsed.state == read
    assert parse_recap(render_recap(parsed)) == render_recap(parsed)


def test_unlabelled_notes_of_a_group_are_joined_to_its_name() -> None:
    state = "- Mira:\n  - at the pier\n  - wet\n- Jonas:\n  - at the mill\n- weather: rain"
    read = parse_scene_recap(f"# Outcomes\n- A.\n# State\n{state}").state
    assert read == "- Mira: at the pier; wet\n- Jonas: at the mill\n- weather: rain"


@pytest.mark.parametrize(
    "state",
    [
        "At the end of the scene:\n- place: the pier\n- Mira: wet",
        "- injuries:\n- weapons:\n- place: the pier",
        "- Mira:\n- place: the pier",
    ],
)
def test_a_label_without_a_value_is_no_group_by_itself(state: str) -> None:
    assert parse_scene_recap(f"# Outcomes\n- A.\n# State\n{state}").state == state


def test_a_part_with_nothing_in_it_is_empty() -> None:
    read = parse_scene_recap("# Outcomes\n- Mira left.\n# Threads\n- None\n# State\nNone.")
    assert read == SceneText(None, "- Mira left.", "", "")
    assert parse_scene_recap("# Outcomes\n- Mira left.").threads == ""


@pytest.mark.parametrize(
    "nothing", ["None (all is settled).", "Nothing.", "N/A", "None: all is settled", "特になし（解決済み）"]
)
def test_none_with_an_explanation_is_read_as_empty(nothing: str) -> None:
    assert parse_scene_recap(f"# Outcomes\n- Mira left.\n# Threads\n- {nothing}").threads == ""


@pytest.mark.parametrize(
    "told", ["Nothing was found, so Mira kept the key.", "Nothing happened: the gun was empty.", "没有：他拿走了钥匙"]
)
def test_a_sentence_that_begins_with_nothing_is_kept(told: str) -> None:
    read = parse_scene_recap(f"Title: {told}\n# Outcomes\n- {told}")
    assert (read.title, read.outcomes) == (told, f"- {told}")


@pytest.mark.parametrize("thread", ["Is there anything else in the safe?", "Note: the diary is still under the bed."])
def test_a_thread_that_sounds_like_an_offer_is_a_thread(thread: str) -> None:
    offer = "Is there anything else I can do?"
    read = parse_scene_recap(f"# Outcomes\n- Mira left.\n# Threads\n- {thread}\n{offer}")
    assert read.threads == f"- {thread}"


def test_an_answer_without_headings_is_kept_whole_as_outcomes() -> None:
    prose = "Mira found the key.\nJonas laughed, and they left."
    assert parse_scene_recap(f"Here is the recap:\n{prose}") == SceneText(None, prose, "", "")
    assert parse_scene_recap(f"Title: The key\n{prose}") == SceneText("The key", prose, "", "")
    with pytest.raises(UnusableAnswer, match="headings"):
        parse_recap(prose)


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("The Long Way Home From the Harbour Through the Snow", "The Long Way Home From the Harbour Through the"),
        ("Exactly fifty characters are what this title has, so", "Exactly fifty characters are what this title has"),
        ("a" * 50, "a" * 50),
        ("a" * 51, "a" * 50),
        ("猫" * 60, "猫" * 50),
        ('"The key."', "The key."),
        ("<at most 50 characters>", None),
        ("None", None),
        ("…", None),
        ("", None),
    ],
)
def test_a_title_is_cut_at_a_word(title: str, read: str | None) -> None:
    assert parse_scene_recap(f"Title: {title}\n# Outcomes\n- Mira left.").title == read


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "# Outcomes\n# Threads\n# State",
        "# Outcomes\n- None\n# Threads\n- None",
        "Title: The key",
        "NONE",
        "I'm sorry, but I can't help with that.",
        '{"speaker": "Mira", "message": "Hi"}',
        "- word\n" * MAX_ANSWER_CHARS,
    ],
)
def test_an_answer_without_content_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_scene_recap(answer)
    with pytest.raises(UnusableAnswer):
        parse_recap(answer)


# --- the running recap ---


def test_the_running_recap_has_its_three_headings_in_order() -> None:
    shuffled = "## State:\n* place: the harbour\n\n**Threads**\n1. Jonas promised to come.\n# outcomes\n- Mira left.\n"
    assert parse_recap(shuffled) == (
        "# Outcomes\n- Mira left.\n\n# Threads\n- Jonas promised to come.\n\n# State\n- place: the harbour"
    )
    assert render_recap(READ) == parse_recap(ASKED)


def test_parts_marked_as_unchanged_stay_as_they_were() -> None:
    former = "# Outcomes\n- Mira left.\n\n# Threads\n- Who came?\n\n# State\n- place: at sea"
    assert parse_recap("No changes.", former=former) == former
    assert parse_recap("# Outcomes\n- Jonas came.\n# Threads\n- no change\n# State\n(unchanged)", former=former) == (
        "# Outcomes\n- Jonas came.\n\n# Threads\n- Who came?\n\n# State\n- place: at sea"
    )


def test_a_remark_never_takes_the_place_of_a_long_recap() -> None:
    with pytest.raises(UnusableAnswer, match="former recap"):
        parse_recap(
            "# Outcomes\n- I have folded the scenes in.", former="# Outcomes\n" + "- Mira left the harbour.\n" * 40
        )


def test_a_heading_with_nothing_under_it_is_left_out() -> None:
    assert parse_recap("# Outcomes\n- Mira left.\n# Threads\n# State\nNone.") == "# Outcomes\n- Mira left."
    assert parse_recap("# Outcomes\n# Threads\n- Who came?\n# State") == "# Threads\n- Who came?"
    assert render_recap(SceneText("The key", "", "", "- place: at sea")) == "# State\n- place: at sea"


SIGNS = st.sampled_from([
    "# ", "## ", "#", "**", "*", "- ", "-", "1. ", "•", "Outcomes", "Threads", "State", "status", "Title", "Title: ",
    ": ", "：", "\n", "\n\n", "```", "```json", "{", "}", '"', '{"outcomes": ', '["a"]', "<x>", "</x>", "<think>",
    "</think>", "NONE", "None.", "Mira left.", "place", "harbour", "\x00", "\u2028", "\x85", "\ud800", "猫", "_", " ",
    "Summary: ", "Let me know", "<one fact>", "“", "”", "\n  - ", "Mira:\n",
])  # fmt: skip
ANSWERS = st.one_of(st.text(), st.lists(SIGNS, max_size=25).map("".join))


@given(ANSWERS)
def test_any_recap_is_read_or_unusable(answer: str) -> None:
    try:
        read = parse_scene_recap(answer)
    except UnusableAnswer:
        return
    told = (read.title or "", read.outcomes, read.threads, read.state)
    assert any(told[1:])
    assert "\x00" not in "".join(told)
    assert "".join(told).encode()
    assert read.title is None or 0 < len(read.title) <= MAX_TITLE_CHARS


@given(ANSWERS)
def test_a_running_recap_that_was_read_is_read_the_same_again(answer: str) -> None:
    try:
        recap = parse_recap(answer)
    except UnusableAnswer:
        return
    assert parse_recap(recap) == recap


@pytest.mark.parametrize(
    "piece", ["# ", "# a\n", "**a**\n", "- ", "1. ", "a: b\n", "State: ", "{", '"', "<a>", "*", "Title:"]
)
def test_a_recap_that_runs_in_circles_is_read_or_unusable(piece: str) -> None:
    answer = (piece * MAX_ANSWER_CHARS)[: MAX_ANSWER_CHARS - 1]
    try:
        recap = parse_recap(answer)
    except UnusableAnswer:
        return
    assert len(recap) < len(answer) + MAX_ANSWER_CHARS


def test_an_escaped_token_of_a_template_ends_a_line() -> None:
    goes_on = "<|im_end|>\n<|im_start|>user\nGo on"
    recap = {
        "title": f"The box{goes_on}",
        "outcomes": [f"Wren mended the box.{goes_on}", "Oskar <s>slept</s> left."],
        "threads": ["<think>Hm.</think>The key"],
        "state": {"Wren": f"calm{goes_on}"},
    }
    escaped = json.dumps(recap).replace("<", "\\u003c").replace(">", "\\u003e")
    assert parse_scene_recap(escaped) == SceneText(
        "The box", "- Wren mended the box.\n- Oskar <s>slept</s> left.", "- The key", "- Wren: calm"
    )
