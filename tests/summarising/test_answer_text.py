"""Reasoning in answers, and answers that only state that the former text has not changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.summarising.answer_text import UnusableAnswer, is_remnant, leaves_former, spoken

FORMER = "Oskar mended the music box, and Wren wound it three times. They agreed to paint the skiff in May. " * 3


@pytest.mark.parametrize(
    "remark",
    [
        "No changes.",
        "- no change",
        "(No update needed)",
        "**No changes to the former summary.**",
        "There are no changes.",
        "There is nothing new to add to the summary.",
        "Nothing has changed.",
        "The summary remains unchanged.",
        "The recap stays the same.",
        "Same as above.",
        "[Former summary]",
        "No changes: the new messages were only small talk.",
        "The summary remains unchanged. The messages are a greeting and a joke.",
        "没有变化。",
        "摘要保持不变。",
        "要約に変更はありません。",
        "변경 사항 없음.",
        "Keine Änderungen.",
        "Sin cambios.",
        "Aucun changement.",
        "Без изменений.",
    ],
)
def test_a_remark_that_nothing_changed_keeps_the_former_text(remark: str) -> None:
    assert leaves_former(remark, FORMER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        FORMER,
        "Nothing changed between them.",
        "There were no changes at the lighthouse; then Oskar left.",
        "The story is the same one that Wren had told.",
        "Wren changed nothing in the workshop.",
        f"No changes. {FORMER}",
        "船坞没有变化，奥斯卡走了。",
    ],
)
def test_other_answers_do_not_keep_the_former_text(text: str) -> None:
    assert not leaves_former(text, FORMER)


def test_a_remark_with_a_reason_keeps_the_former_text() -> None:
    assert leaves_former("No changes.", "Wren left.")
    assert not leaves_former("No changes. Then Wren came back.", "Wren left, and came back.")


@pytest.mark.parametrize(
    "rest",
    [
        "<|im_end|>",
        "<|im_end|>\n<|im_start|>user\nAnd then we kissed.<|im_end|>\n<|im_start|>assistant\nOf course.",
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd then?",
        "<|endoftext|>Once upon a time",
        "<end_of_turn>\n<start_of_turn>user\nAnd then?",
        "</s>[INST] And then? [/INST] Then they slept.",
        "<|end|><|user|>And then?",
        "<|end|><|start|>user<|message|>And then?<|end|>",
        "<｜end▁of▁sentence｜><｜User｜>And then?",
        "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>And then?",
        "<|im_end|>\n<|im_start|>assistant\nHm.</think>They slept.",
        "</s> <think>And so",
        "\n\n### Instruction:\nGo on.\n\n### Response:\nThen they slept.",
    ],
)
def test_what_follows_the_end_of_the_turn_is_dropped(rest: str) -> None:
    assert spoken(f"Wren lit the lamp.{rest}") == "Wren lit the lamp."


@pytest.mark.parametrize(
    "begin",
    [
        "<|im_start|>assistant\n",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<start_of_turn>model\n",
        "<s>",
        " [/INST] ",
        "### Response:\n",
        "<think>Hm.</think><|im_start|>assistant\n",
        "<|im_start|>assistant\n<think>Hm.<|im_end|></think>",
        "<|im_end|>\n",
        "Sure!\n<|im_start|>assistant\n",
        "Sure!<|im_end|>\n<|im_start|>assistant\n",
        "Here is the summary:<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n",
        "Hm.<|im_end|>\n</think>\n\n",
        "Hm.</s></think>",
        "The user quoted [INST]. Short.</think>",
        "<|im_start|>user\nNo: hm.</think>",
        "<|im_start|>assistant\nHm.<|im_end|>\n</think>",
        "Hm. Short.<|end|><|start|>assistant<|channel|>final<|message|>",
        "Here is the summary:\n\n### Response:\n",
        "### Instruction:\nSum up.\n\n### Response:\n",
        "[INST] Sum up. [/INST]",
        "<|start_header_id|>user<|end_header_id|>\n\nSum up.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n",
        "<｜Assistant｜>",
    ],
)
def test_a_token_that_begins_the_turn_is_dropped(begin: str) -> None:
    assert spoken(f"{begin}Wren lit the lamp.<|im_end|>\nMore.") == "Wren lit the lamp."


@pytest.mark.parametrize(
    "text",
    [
        "# Outcomes\n- An instruction: go.",
        "Wren <3 Oskar",
        "Assistant editors met.",
        "[sic]",
        "Wren wrote <s>black</s> red. The king died.",
        '["Wren wrote <s>black</s> red.", "The king died."]',
        "- <s>Buy oil</s>\n- Light the lamp",
        "<s>Nell</s> Quill lit the lamp. The king died.",
        "Quill lit the lamp. <s>Nell</s> <s>Wren</s>",
        "# Summary\nWren lit the lamp.\n\n## Response: the council\nThey left.",
        "model trains were on the shelf.",
    ],
)
def test_texts_without_tokens_stay_whole(text: str) -> None:
    assert spoken(text) == text


@pytest.mark.parametrize(
    "answer",
    [
        "<s>Wren lit the lamp.</s>",
        "<think>Hm.</think>\n<s> Wren lit the lamp. </s>\n",
        "<s>[INST] Sum up. [/INST] Wren lit the lamp.</s>",
        "Wren lit the lamp.\n<s>[INST] Go on. [/INST] They slept.</s>",
        "Wren lit the lamp.</s> <s>They slept.</s>",
        "<s> </s>Wren lit the lamp.</s>More.",
        "<s>\nWren lit the lamp.</s>\n<s>Oskar</s> slept.",
    ],
)
def test_tokens_that_look_like_html_are_dropped(answer: str) -> None:
    assert spoken(answer) == "Wren lit the lamp."


@pytest.mark.parametrize("length", [600, 2_000, 20_000])
def test_a_short_remark_in_place_of_a_long_text_is_a_remnant(length: int) -> None:
    former = (FORMER * 100)[:length]
    assert is_remnant("I have folded in the messages.", former)
    assert is_remnant("Wren. " * 9, former)
    assert not is_remnant((FORMER * 3)[: min(length, 2_000) // 10], former)
    assert not is_remnant(FORMER, former)


def test_a_short_text_may_become_shorter() -> None:
    assert not is_remnant("Wren left.", FORMER)
    assert not is_remnant("Wren left.", "")


@given(st.text(), st.text())
def test_leaves_former_accepts_any_text(text: str, former: str) -> None:
    assert leaves_former(text, former) in (True, False)


ANSWER = "Wren wound the music box."


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>A box? Two?</think>{ANSWER}",
        f"<think>\nA box?\n</think>\n\n{ANSWER}",
        f"A box? Two?\n</think>\n{ANSWER}",
        f"<thinking>A box?</thinking>{ANSWER}",
        f"<Thought>A box?</Thought>{ANSWER}",
        f"<reasoning>A box?</reasoning>{ANSWER}",
        f"<reason>A box?</reason>{ANSWER}",
        f"<reflection>A box?</reflection>{ANSWER}",
        f"<scratchpad>A box?</scratchpad>{ANSWER}",
        f'<think effort="low">A box?</think >{ANSWER}',
        f"<seed:think>A box?</seed:think>{ANSWER}",
        f"[THINK]A box?[/THINK]{ANSWER}",
        f"◁think▷A box?◁/think▷{ANSWER}",
        f"<|begin_of_thought|>A box?<|end_of_thought|>{ANSWER}",
        f"<think>A box? <think>Two?</think></think>{ANSWER}",
        f"{ANSWER}<think>Was it one box?</think>",
        f"<|channel|>analysis<|message|>A box?<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
        f"analysisA box? Two?assistantfinal{ANSWER}",
    ],
)
def test_reasoning_is_no_part_of_an_answer(answer: str) -> None:
    assert spoken(answer).strip() == ANSWER


@pytest.mark.parametrize(
    "answer",
    [
        "<think>A box? Two?",
        f"{ANSWER}<thinking>A box?",
        "[THINK]A box?",
        "<|channel|>analysis<|message|>A box? Two?",
        "analysisA box? Two?",
    ],
)
def test_an_answer_that_ends_within_reasoning_is_refused(answer: str) -> None:
    with pytest.raises(UnusableAnswer, match="still thinking"):
        spoken(answer)


@pytest.mark.parametrize(
    "answer", ["Wren wrote [think] on the lid.", "The reason was <unknown>.", "Analysis of the box began."]
)
def test_words_about_thinking_are_kept(answer: str) -> None:
    assert spoken(answer) == answer
