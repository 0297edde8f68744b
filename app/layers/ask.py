"""Asks the model on behalf of any layer: builds the request, reads the answer, and retries after unusable answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.kit.llm import ChatMessage, LanguageModel, ModelError
from app.summarising.answer_text import UnusableAnswer

Value = TypeVar("Value")


BuildRequest = Callable[[int, str | None], list[ChatMessage]]
"""(budget_tokens, complaint) → the messages of a request, which have at most `budget_tokens` in total.

`complaint` is the reason why the previous answer was unusable; None for the first request. Raises DoesNotFit.
"""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer: the value read from it, and the model's name."""

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
    """Ask until an answer is usable, at most `tries` times, and return that answer.

    Args:
        model: The model.
        build: Builds the request.
        read: Reads an answer. Raises UnusableAnswer with a reason that does not quote the answer.
        answer_tokens: The maximum length of the answer, unless the deployment sets another. The request may use the
            rest of the model's context.
        temperature: The sampling temperature, unless the deployment sets another; 0 selects the most probable words.
        tries: The maximum number of requests. Each after the first contains the reason why the previous answer was
            unusable.

    Raises ModelError with the last reason, and DoesNotFit if the request does not fit the model's context.

    """
    settings = model.settings
    answer_tokens = answer_tokens if settings.max_tokens is None else settings.max_tokens
    temperature = temperature if settings.temperature is None else settings.temperature
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
