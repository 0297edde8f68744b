"""What the demo shows of recall."""

from typing import Any

from app.demo.show_recalled import word_recalled, word_unasked

FEET = {"kind": "message", "id": "m041", "score": 0.62, "parts": {"vector": 0.5, "text": 0.0, "neighbours": 0.1234}}
PIER = {"kind": "memory", "id": "7", "score": 0.81, "parts": {"vector": 0.0, "text": 0.81, "neighbours": 0.0}}


def context_with(*found: tuple[dict[str, Any], str]) -> dict[str, Any]:
    text = "\n".join(["## Recalled", "", *(f"- [any] {text}" for _, text in found)])
    segments = [{"name": "recalled", "text": text}] if found else []
    return {"segments": segments, "recalled": [one for one, _ in found]}


def show(*found: tuple[dict[str, Any], str]) -> str:
    return "\n".join(word_recalled("walking barefoot", context_with(*found)))


def test_the_best_result_comes_first_with_its_parts() -> None:
    shown = show((FEET, "Nell: You never had your feet wet."), (PIER, "The pier is wet."))
    first, second = (
        shown.index("0.81  memory · words 0.81\n"),
        shown.index("0.62  message m041 · meaning 0.50, neighbours"),
    )
    assert first < shown.index("The pier is wet.") < second < shown.index("Nell: You never had your feet wet.")
    assert "embedding model" not in shown


def test_without_an_embedding_model_it_says_so() -> None:
    by_words = PIER | {"parts": {"text": 0.81, "neighbours": 0.0}}
    assert "only the words of the question were compared" in show((by_words, "The pier is wet."))
    assert "Nothing." in show()


def test_what_recall_adds_unasked_is_shortened_the_best_first() -> None:
    found = [(FEET, "Nell: You never had your feet wet."), (PIER, "wet " * 60), *[(FEET, "Nell: Hm.")] * 5]
    shown = "\n".join(word_unasked(context_with(*found)))
    assert "What recall adds to the next call: 7 texts that the newest messages bring back" in shown
    assert shown.index("0.81  memory · words 0.81\n") < shown.index("0.62  message m041 · meaning 0.50, neighbours")
    assert 20 < shown.count("wet") < 60
    assert "2 weaker ones not shown." in shown
    assert "0 texts" in "\n".join(word_unasked(context_with()))
