"""Prose out of what cheap models wrap around it."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.summarising.answer_text import MAX_ANSWER_CHARS, UnusableAnswer
from app.summarising.prose import read_prose

TEXT = "Oskar mended the music box.\n\nWren wound it three times; nobody laughed."


@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"\n\n  {TEXT}\n \n",
        TEXT.replace("\n\n", " \r\n\r\n\r\n\r\n"),
        f"```\n{TEXT}\n```",
        f"```markdown\n# Summary\n\n{TEXT}\n```",
        json.dumps({"name": "save_memory", "arguments": {"content": TEXT}}),
        json.dumps({"name": "save_memory", "arguments": json.dumps({"content": TEXT})}),
        json.dumps({"tool": "save_memory", "input": {"content": TEXT}}),
        f"```json\n{json.dumps({'name': 'save_memory', 'parameters': {'content': TEXT}})}\n```",
        f"<tool_call>\n{json.dumps({'name': 'save_memory', 'arguments': {'content': TEXT}})}\n</tool_call>",
        f"Here is the summary:\n\n{TEXT}",
        f"Here's the updated summary of the story: {TEXT}",
        f"Sure! Here is the new text:\n{TEXT}",
        f"Sure!\n\n{TEXT}",
        f"Summary: {TEXT}",
        f"**Summary:** {TEXT}",
        f"**Updated Summary**\n{TEXT}",
        f"## Summary\n### Until now\n{TEXT}",
        f"# 要約\n{TEXT}",
        f"Hier ist die neue Zusammenfassung:\n{TEXT}",
        f"好的，以下是更新后的故事摘要：\n{TEXT}",
        f"{TEXT}\n\nLet me know if you would like changes!",
        f"{TEXT}\n\n---\nNote: I kept the promise short.",
        f"<summary>\n{TEXT}\n</summary>",
        f'"{TEXT}"',
        f"“{TEXT}”",
        '{"summary": "' + TEXT.replace("\n", "\\n") + '"}',
        json.dumps({"summary": TEXT, "keywords": ["ferry"], "mood": {}}),
        f"<think>\nShort? Long?\n</think>\n{TEXT}",
        f"Let me see.\n</think>\n\n{TEXT}",
        TEXT.replace("mended", "men\x00ded\x1b"),
    ],
)
def test_the_wrapping_is_taken_off(answer: str) -> None:
    assert read_prose(answer) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "[04/01 22:15] Wren came back.",
        "Wren said: the box is broken.",
        '"Go on," said Wren, and Oskar said "No."',
        "Oskar had one wish: to stay.\nWren had none.",
        "Here Wren lost the key: it fell into the harbour.",
        "02/11: Pell came.\n02/12: Pell left.",
        "I hope that Pell comes back.",
        "Sure of nothing, Wren wound the box.",
        "Note: Wren still had the key.",
        "第三天夜里，奥斯卡带着修好的音乐盒来到工坊，低声对米拉说：\n“我会回来。”",
        "その夜オスカーは直したオルゴールを抱えて工房へ来て、レンにこう打ち明けたのだった：\n「ここに残りたい」",
    ],
)
def test_text_that_only_looks_like_wrapping_stays(text: str) -> None:
    assert read_prose(text) == text


def test_a_heading_with_a_date_becomes_a_plain_line() -> None:
    assert read_prose("## 02/11 — memo entry\nPell came.\n## 02/12\nPell left.") == (
        "02/11 — memo entry\nPell came.\n02/12\nPell left."
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "the answer is empty"),
        (" \n…\n```\n```", "the answer is empty"),
        ("Understood.", "the answer is empty"),
        ("<think>What now", "the answer ends while the model is still thinking"),
        ("I'm sorry, but I can't help with Wren.", "the model refuses"),
        ('{"speaker": "Wren", "message": "Ahoy!"}', "the answer is data, not prose"),
        ('[{"text": "Wren"}]', "the answer is data, not prose"),
        ('{"title": "The ferry", "events": ["Wren rowed ashore.", "Ana left."]}', "the answer is data, not prose"),
        ('{"title": "The ferry", "story": {"text": "Wren rowed ashore."}}', "the answer is data, not prose"),
        ("Wren. " * MAX_ANSWER_CHARS, "the answer is far too long"),
    ],
)
def test_an_answer_without_prose_is_unusable_and_not_quoted(answer: str, why: str) -> None:
    with pytest.raises(UnusableAnswer, match=f"^{why}$"):
        read_prose(answer)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _tagged(text: str) -> str:
    return f"<summary>\n{text}\n</summary>"


def _quoted(text: str) -> str:
    return f"“{text}”"


def _in_json(text: str) -> str:
    return json.dumps({"version": 2, "note": "", "summary": text})


def _introduced(text: str) -> str:
    return f"Sure!\nHere is the updated summary:\n\n{text}"


def _titled(text: str) -> str:
    return f"## Summary\n---\n**Until now**\n\n{text}"


def _with_offer(text: str) -> str:
    return f"{text}\n\n***\nNote: I kept it short.\n\nLet me know if that helps."


def _with_gaps(text: str) -> str:
    return "\n \n" + text.replace("\n\n", "\n\n \n\n") + "\n\n"


AROUND = [_introduced, _titled, _with_offer, _with_gaps]
ENVELOPES = [_fenced, _tagged, _quoted, _in_json]


@given(st.lists(st.sampled_from(AROUND), unique=True), st.sampled_from(ENVELOPES), st.booleans())
def test_several_wrappings_are_taken_off(
    around: list[Callable[[str], str]], envelope: Callable[[str], str], inside: bool
) -> None:
    answer = TEXT if inside else envelope(TEXT)
    for wrap in around:
        answer = wrap(answer)
    assert read_prose(envelope(answer) if inside else answer) == TEXT


@pytest.mark.parametrize("line", ["Let me know", "Summary", "Summary of it: Pell", "Sure of it!"])
def test_a_lone_line_is_never_taken_for_wrapping(line: str) -> None:
    assert read_prose(line) == line


SIGNS = st.sampled_from([
    "# ", "#", "**", "*", "__", "- ", "---", "1. ", ": ", "：", "\n", "\n\n", "```", "```json\n", "~~~", "{", "}",
    '"', '{"summary": ', "“", "”", "「", "」", "<s>", "</s>", "<think>", "</think>", "NONE", "\x00", "\u2028", "\x85",
    "\ud800", "Here is the summary: ", "Summary:", "Diary entry: ", "Let me know", "Sure!", "Note: I", "Wren came.",
    "猫", " ", "7",
])  # fmt: skip
ANSWERS = st.one_of(st.text(), st.lists(SIGNS, max_size=25).map("".join))


@given(ANSWERS)
def test_an_answer_is_unusable_or_parsing_it_is_idempotent(answer: str) -> None:
    try:
        text = read_prose(answer)
    except UnusableAnswer:
        return
    assert "\x00" not in text
    assert text.encode()
    assert text == text.strip()
    assert read_prose(text) == text


@pytest.mark.parametrize("piece", ["# a\n", "**a**\n", "a:\n", "<a>", '"', "{", "```\n", "\n", "Summary: ", "- "])
def test_an_answer_that_runs_in_circles_is_read_or_unusable(piece: str) -> None:
    answer = (piece * MAX_ANSWER_CHARS)[: MAX_ANSWER_CHARS - 1]
    try:
        text = read_prose(answer)
    except UnusableAnswer:
        return
    assert 0 < len(text) <= len(answer)


@pytest.mark.parametrize(
    "answer",
    [
        f'[TOOL_CALLS][{{"name": "save_memory", "arguments": {{"content": {json.dumps(TEXT)}}}}}]',
        f'save_memory(content="{TEXT}")',
        f'save_memory("{TEXT}")',
        f'{TEXT}\n<tool_call>\n{{"name": "save_memory"}}\n</tool_call>',
        f"<function=save_memory>{TEXT}</function>",
        '{"name": "save_memory", "arguments": {}}',
        '{"name": "save_memory", "arguments": "Oskar"}',
        f"save_memory({json.dumps({'content': TEXT})});",
        f'save_memory("Oskar (the mender) left :)", importance=0.5)\nsave_memory(content="{TEXT}")',
        f"```\n[TOOL_CALLS]save_memory{json.dumps({'content': TEXT})}\n```",
        f'{TEXT}\n<tool_call>{{"name": "save_memory"}}</tool_call>',
        f"{TEXT}\n<function=save_memory>\n<parameter=content>\n{TEXT}\n</parameter>\n</function>",
        f"<|tool_call|>{TEXT}",
    ],
)
def test_the_call_of_a_tool_is_no_text(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        read_prose(answer)


@pytest.mark.parametrize(
    "text",
    [
        "Oskar (the mender) left.",
        "Wren sang: la(la).",
        "f(x) = y, Oskar said.",
        '카이("등대지기")는 미라에게 약속했다.',
        "미라(“시계 고치는 사람”)가 등대에 왔고, 카이는 약속했다.",
        '카이("등대지기")',
        '米拉("钟表匠")来到灯塔，凯答应了她。',
        '美羽("時計屋")が灯台に来た。',
        'Sing("la la") was the first word.',
        'Sing("la la") was the first word (and "ho" the last)',
        'Wren("the clockmaker") came to the lighthouse.\nOskar (who was tired) said "No."',
    ],
)
def test_brackets_make_no_call(text: str) -> None:
    assert read_prose(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Wren's model writes <tool_call> as plain text.",
        "Wren read it aloud.\n- <tool_call> begins a call\n- [TOOL_CALLS] begins several",
        "Oskar asked: what is <function=save>, and what <|tool_call|>?",
    ],
)
def test_a_tag_of_a_call_in_a_sentence_stays(text: str) -> None:
    assert read_prose(text) == text


TOKENS = ["<s>", "<|im_end|>", "<|begin_of_text|>", "[INST]"]


def _in_escapes(token: str) -> str:
    return json.dumps({"entry": f"{TEXT}{token}More."}).replace("<", "\\u003c").replace("[", "\\u005b")


@pytest.mark.parametrize("token", TOKENS)
def test_no_token_of_a_template_is_left_in_a_text(token: str) -> None:
    kept = "More." if token in ("<s>", "<|begin_of_text|>") else ""
    assert read_prose(_in_escapes(token)) == f"{TEXT}{kept}"
    assert token not in read_prose(f"“{TEXT} {token} More.”")


@pytest.mark.parametrize("before", ['"{}"', "Here is the entry:\n{}"])
@pytest.mark.parametrize("token", ["<s>", "<|begin_of_text|>"])
def test_a_token_before_the_text_is_dropped(token: str, before: str) -> None:
    assert read_prose(before.format(f"{token}{TEXT}")) == TEXT


@pytest.mark.parametrize("before", ['"{}"', "Here is the entry:\n{}"])
@pytest.mark.parametrize("token", ["<|im_end|>", "[INST]"])
def test_a_turn_without_a_text_is_unusable(token: str, before: str) -> None:
    with pytest.raises(UnusableAnswer, match="the answer is empty"):
        read_prose(before.format(f"{token}{TEXT}"))


@pytest.mark.parametrize("text", ["<s>Buy</s> oil, and <s>light</s>", "<b>Buy</b> oil, and <b>light</b>"])
def test_tags_around_words_are_no_wrapping(text: str) -> None:
    assert read_prose(text) == text


def test_a_text_in_nested_tags_is_taken_out() -> None:
    assert read_prose(f"<text>\n<text>{TEXT}</text></text>") == TEXT
