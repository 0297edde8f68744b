"""The lines of facts, memories and core blocks in the demo."""

from typing import Any

from app.demo.show_learnt import word_blocks, word_learnt
from tests.talk import Json


def memory(content: str, score: float) -> Json:
    return {
        "content": content,
        "category": None,
        "importance": 0.65,
        "score": score,
        "said_at": "2025-09-06T18:42:00+01:00",
        "sources": ["message:m001"],
        "origin": "extractive",
    }


def test_the_archive_is_shown_by_its_weakest_memory() -> None:
    archived = [memory("It rains.", 0.04), memory("She knocks.", 0.01)]
    shown = "\n".join(word_learnt([], [memory("The clock is right.", 0.6)], archived))
    assert "0.60  The clock is right. · message m001 · quoted, no model" in shown
    assert "2 memories more in the archive, for example:" in shown
    assert "She knocks. · said on 2025-09-06, from 0.65 to 0.01" in shown
    assert "It rains." not in shown


def test_an_empty_archive_is_not_mentioned() -> None:
    assert "archive" not in "\n".join(word_learnt([], [memory("The clock is right.", 0.6)], []))


def test_with_a_model_a_quotation_is_not_said_to_lack_one() -> None:
    shown = "\n".join(word_learnt([], [memory("The clock is right.", 0.6)], [], has_model=True))
    assert "0.60  The clock is right. · message m001 · quoted, not written by the model" in shown


def fact(value: str | None, number: int, **more: Any) -> Json:
    return {
        "id": str(number),
        "key": "winding_key",
        "value": value,
        "scope": "chat",
        "sources": [f"message:m{number:03}"],
        "origin": "tool",
    } | more


def test_former_values_of_a_fact_are_below_it_the_newest_first() -> None:
    values = [fact("on the nail", 5), fact(None, 4), fact("lost", 3), fact("his", 9, scope="user"), fact("hers", 2)]
    shown = list(word_learnt(values[:1], [], [], values={"5": [*values, fact("Marten's", 1)]}))
    at = shown.index("      · winding_key: on the nail · message m005 · noted by the character")
    assert shown[at + 1 :] == [
        "          before: (deleted)",
        "          before: lost",
        "          before: hers",
        "          and 1 older value",
    ]


def test_a_memory_has_its_importance_beside_its_strength() -> None:
    shown = "\n".join(word_learnt([], [memory("The clock is right.", 0.6)], []))
    assert "0.60  The clock is right. · message m001 · quoted, no model · importance 0.65" in shown


def test_blocks_are_shown_with_their_text_and_origin() -> None:
    blocks = [
        {"label": "user", "text": "Nell mends clocks.\nHer hand shakes.", "origin": "tool"},
        {"label": "facts", "text": "- Nell: “I promise.”", "origin": "extractive"},
        {"label": "context", "text": "", "origin": "person"},
    ]
    shown = "\n".join(word_blocks(blocks))
    assert "The core memory: 2 blocks, always in the prompt" in shown
    assert "— user: written by the character —\n\n      Nell mends clocks.\n      Her hand shakes.\n" in shown
    assert "— facts: the most important memories —\n\n      · Nell: “I promise.”" in shown
    assert "context" not in shown
    assert list(word_blocks(blocks[2:])) == []
