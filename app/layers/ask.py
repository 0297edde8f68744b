"""Asks the model, for every layer: builds the request, has it answered, reads the answer, asks again where it may."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.kit.llm import ChatMessage, LanguageModel, ModelError
from app.summarising.reading import UnusableAnswer

Value = TypeVar("Value")


BuildRequest = Callable[[int, str | None], list[ChatMessage]]
"""(budget_tokens, complaint) → the messages of a request, together at most `budget_tokens`.

`complaint` is what was wrong with the answer before, None for the first request. Raises DoesNotFit.
"""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer: what was read from it, and the model's name."""

    value: Value
    model: str


async def ask_model(
    model: LanguageModel,
    build: BuildRequest,
    read: Callable[[str], Value],
    *,
    answer_tokens: int,
    temperature: float,
    tries: int = 1,
) -> Answer[Value]:
    """Ask until an answer is usable, `tries` times at most.

    Args:
        model: The model.
        build: Builds the request.
        read: Reads an answer. Raises UnusableAnswer with a reason that quotes nothing of it.
        answer_tokens: The longest answer; the request gets what the model takes besides.
        temperature: 0 for the most probable words.
        tries: How often it is asked; a request after the first says what was wrong with the answer before.

    Raises ModelError with the last reason, and DoesNotFit where the request has no room.

    """
    complaint: str | None = None
    for _ in range(tries):
        request = build(model.context_tokens - answer_tokens, complaint)
        answer = await model.complete(request, max_tokens=answer_tokens, temperature=temperature)
        try:
            if answer.finish_reason == "length":
                raise UnusableAnswer("the model's answer was cut off")
            return Answer(read(answer.text), answer.model)
        except UnusableAnswer as error:
            complaint = str(error)
    raise ModelError(complaint or "the model was not asked", transient=False)
