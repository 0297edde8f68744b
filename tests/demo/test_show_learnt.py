"""The lines of facts and memories in the demo."""

from app.demo.show_learnt import word_learnt
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
