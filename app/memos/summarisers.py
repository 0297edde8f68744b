"""Two summarisers behind one interface: a model, and without one an honest quotation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.kit.fillable import Fillable
from app.kit.llm import LanguageModel, ModelError
from app.kit.tokens import count_tokens
from app.memos.answers import parse_highlights
from app.memos.highlights import Highlight
from app.memos.layer import MemoDraft, Origin
from app.memos.prompts import MEMO, memo_messages
from app.summarising.extractive import extract
from app.summarising.fitting import DoesNotFit
from app.summarising.reading import UnusableAnswer
from app.summarising.transcript import Utterance

ANSWER_TOKENS = 600
"""Room for three highlights, also in scripts that take many tokens."""

EXTRACT_TOKENS = 60
EXTRACT_VERSION = "extractive/1"


@dataclass(frozen=True, slots=True)
class MemoRequest:
    """What a memo is made from.

    Attributes:
        batch: The eligible messages.
        history: What was said up to and including the batch; empty unless the summariser wants it.
        characters: Names of the chat's characters.
        language: BCP 47, if the chat says so.
        instruction: A person's wish for this one time.

    """

    batch: Sequence[Utterance]
    history: Sequence[Utterance]
    characters: Sequence[str]
    language: str | None
    instruction: str | None


class Summariser(Protocol):
    """Makes a memo of a batch."""

    @property
    def origin(self) -> Origin:
        """What its memos say that they come from."""
        ...

    @property
    def history_messages(self) -> int:
        """How many messages before the batch it wants to see."""
        ...

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Raises ModelError."""
        ...


class ModelSummariser:
    """Asks a model."""

    origin: Origin = "model"
    history_messages = 0

    def __init__(self, model: LanguageModel, prompt: Fillable = MEMO) -> None:
        self._model = model
        self._prompt = prompt

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Ask for highlights and read the answer. Raises ModelError, also for an answer that cannot be read."""
        try:
            messages = memo_messages(
                request.batch,
                language=request.language,
                characters=request.characters,
                instruction=request.instruction,
                prompt=self._prompt,
                budget_tokens=self._model.context_tokens - ANSWER_TOKENS,
                count_tokens=count_tokens,
            )
        except DoesNotFit as error:
            raise ModelError(str(error), transient=False) from error
        answer = await self._model.complete(messages, max_tokens=ANSWER_TOKENS, temperature=0.2)
        if answer.finish_reason == "length":
            raise ModelError("the model's answer was cut off", transient=False)
        try:
            highlights = parse_highlights(answer.text)
        except UnusableAnswer as error:
            raise ModelError(str(error), transient=False) from error
        return MemoDraft(highlights, self.origin, answer.model, self._prompt.version)


class ExtractiveSummariser:
    """Quotes the sentences that say most, without a model; its memos are labelled so."""

    origin: Origin = "extractive"
    history_messages = 500

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Choose sentences; never fails. In a thread, because long messages take longer than a loop may wait."""
        lines = await asyncio.to_thread(
            extract, request.batch, request.history, budget_tokens=EXTRACT_TOKENS, count_tokens=count_tokens
        )
        return MemoDraft([Highlight(line) for line in lines], self.origin, None, EXTRACT_VERSION)


def choose_summariser(model: LanguageModel | None, prompt: Fillable = MEMO) -> Summariser:
    """The model's, asked with `prompt`, if there is one."""
    return ModelSummariser(model, prompt) if model else ExtractiveSummariser()
