"""Asks the model on behalf of any layer: builds the request, judges the answer, and asks again after a refused one.

The refused answers of all attempts at a work item are counted together, because a worker may be killed between two
answers. So each refused answer is stored before the model is asked again. If an item is made in parts, the refused
answers are counted for each part separately (`Inquiry.count_from`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from app.kit.attempts import record_refusal
from app.kit.db import Database
from app.kit.llm.client import ChatMessage, Completion, LanguageModel, ModelError
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, Profile, judge
from app.summarising.judging.languages import identify

log = logging.getLogger(__name__)

Value = TypeVar("Value")

MAX_DECLINED = 2
"""After this many answers in which the model declines, it is not asked again."""

MAX_REFUSED = 3
"""After this many refused answers of any kind, the model is not asked again."""

_ADDED_TEMPERATURE = 0.5
_LEAST_LAST_TEMPERATURE = 0.7
_MOST_LAST_TEMPERATURE = 1.0
"""The highest temperature that all servers accept. A higher one is only sent if the deployment sets it."""

BuildRequest = Callable[[int], list[ChatMessage]]
"""budget_tokens → the messages of a request, which have at most `budget_tokens` in total. Raises DoesNotFit."""


class NoUsableAnswer(ModelError):
    """The model has declined twice, or three of its answers were refused.

    The layer continues without a model. If it cannot, and the error reaches the runner, the work item has failed for
    good.

    Attributes:
        refusals: The refused answers of the work item, at least one, in their order.

    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"no answer of the model could be used: {refusals[-1].reason}", transient=False)
        self.refusals = tuple(refusals)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer: the value read from it, and the model's name."""

    value: Value
    model: str


class Inquiry:
    """The requests to a model for one work item, and its refused answers.

    Args:
        model: The model.
        refusals: The answers that were refused in earlier attempts.
        store: Stores a further refused answer; returns False if the work item was rescheduled or taken over meanwhile.
        layer: The layer of the work item, for the log.

    """

    def __init__(
        self,
        model: LanguageModel,
        refusals: Sequence[Refusal] = (),
        store: Callable[[Refusal], Awaitable[bool]] | None = None,
        layer: str = "a layer",
    ) -> None:
        self.model = model
        self._layer = layer
        self.refusals = list(refusals)
        self._counted_from = 0
        self._store = store
        self._complaint = refusals[-1].reason if refusals else None

    @classmethod
    def of(cls, model: LanguageModel, database: Database, claimed: Claimed) -> Self:
        """Return the inquiry of a claimed work item; refused answers are stored on the item."""

        async def store(refusal: Refusal) -> bool:
            found = {"layer": claimed.layer, "refusal": refusal}  # `memobook eval` reads these
            log.info("an answer for %s was refused: %s", claimed.layer, refusal, extra=found)
            async with database.unit_of_work() as db_session:
                return await record_refusal(db_session, claimed, refusal)

        return cls(model, claimed.refusals, store, claimed.layer)

    @property
    def complaint(self) -> str | None:
        """The fault of the last answer, or None if it was accepted or there was no answer yet."""
        return self._complaint

    def count_from(self, number: int) -> None:
        """Do not count the first `number` refused answers, because they belong to parts that are finished."""
        self._counted_from = number
        if not self._counted:
            self._complaint = None

    @property
    def _counted(self) -> list[Refusal]:
        return self.refusals[self._counted_from :]

    def check(self) -> None:
        """Raise NoUsableAnswer if the model is not to be asked again."""
        declined = sum(refusal.kind == "declined" for refusal in self._counted)
        if declined >= MAX_DECLINED or len(self._counted) >= MAX_REFUSED:
            why = "; ".join(map(str, self.refusals))
            log.warning("the model is not asked again for %s; its answers were refused: %s", self._layer, why)
            raise NoUsableAnswer(self.refusals)

    @property
    def is_last(self) -> bool:
        """Whether the next request is the last one, whatever the fault of its answer."""
        return len(self._counted) >= MAX_REFUSED - 1

    def temperature(self, usual: float) -> float:
        """Return the temperature of the next request: `usual`, or a higher one for the last request.

        At the same temperature, the model would probably give another answer like the two that were refused. If
        `usual` is 1 or more, it is not raised.
        """
        if not self.is_last:
            return usual
        raised = max(usual + _ADDED_TEMPERATURE, _LEAST_LAST_TEMPERATURE)
        return max(usual, min(raised, _MOST_LAST_TEMPERATURE))

    def log_asked_again(self) -> None:
        """Log that the next request follows a refused answer; `memobook eval` counts these lines."""
        log.debug("the model is asked again for %s", self._layer, extra={"layer": self._layer, "asked_again": True})

    def accept(self) -> None:
        """Note that the last answer was usable."""
        self._complaint = None

    async def refuse(self, refusal: Refusal) -> None:
        """Store that the last answer was refused. Raises ModelError if the lease of the work item is lost."""
        self.refusals.append(refusal)
        self._complaint = refusal.reason
        if self._store is not None and not await self._store(refusal):
            raise ModelError("the source of the item changed while the item was being made", transient=False)


async def ask_model(
    inquiry: Inquiry,
    build: BuildRequest,
    profile: Profile[Value],
    material: Material,
    *,
    answer_tokens: int,
    temperature: float,
) -> Answer[Value]:
    """Ask until an answer is accepted, and return it.

    A request after a refused answer names the fault of that answer. The request after two refused answers has a higher
    temperature.

    Args:
        inquiry: The model, and the refused answers of the work item.
        build: Builds the request.
        profile: How the answer is read and judged.
        material: The texts that the answer is made from.
        answer_tokens: The maximum length of the answer in tokens, unless the deployment sets another. The request may
            use the rest of the model's context.
        temperature: The usual sampling temperature, unless the deployment sets one; 0 selects the most probable words.

    Raises NoUsableAnswer if the model has declined twice or three answers were refused. Answers of earlier attempts at
    the work item count, too; if it is made in parts, only the answers for its current part count. Raises ModelError if
    the model gives no answer or the lease of the work item is lost, and DoesNotFit if the request does not fit the
    model's context.

    """
    settings = inquiry.model.settings
    answer_tokens = answer_tokens if settings.max_tokens is None else settings.max_tokens
    usual = temperature if settings.temperature is None else settings.temperature
    while True:
        inquiry.check()
        request = _build(build, inquiry.model.context_tokens - answer_tokens, inquiry.complaint)
        if inquiry.complaint is not None:
            inquiry.log_asked_again()
        try:
            answer = await inquiry.model.complete(
                request, max_tokens=answer_tokens, temperature=inquiry.temperature(usual)
            )
            # In a thread: a long answer, or loading the data that identifies languages, would block the event loop.
            value = await asyncio.to_thread(_judge, answer, request, profile, material, inquiry)
        except ModelError as error:
            if error.refusal is None:
                raise
            await inquiry.refuse(error.refusal)
        except UnusableAnswer as error:
            await inquiry.refuse(Refusal(error.kind, str(error)))
        else:
            inquiry.accept()
            return Answer(value, answer.model)


def _judge(
    answer: Completion,
    request: Sequence[ChatMessage],
    profile: Profile[Value],
    material: Material,
    inquiry: Inquiry,
) -> Value:
    if answer.finish_reason == "length":
        if profile.read_cut_off is None:
            raise UnusableAnswer("the model's answer was cut off")
        profile = replace(profile, read=profile.read_cut_off)
    return judge(
        answer.text,
        profile,
        material,
        rules=request[0]["content"],
        refused=inquiry.refusals,
        is_last=inquiry.is_last,
        identify=identify,
    )


def _build(build: BuildRequest, budget_tokens: int, complaint: str | None) -> list[ChatMessage]:
    """Return a request; if there is a complaint, it ends with this fault of the last answer. Raises DoesNotFit."""
    if complaint is None:
        return build(budget_tokens)
    added = (
        f"\n\nAn earlier answer to this request was refused: {complaint}. "
        "Answer again, in the form asked for, without this fault."
    )
    *before, last = build(budget_tokens - count_tokens(added))
    return [*before, {"role": last["role"], "content": last["content"] + added}]
