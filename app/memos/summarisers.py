"""Two summarisers behind one interface: a model, and without one an honest quotation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.kit.fillable import Fillable
from app.kit.llm import ChatMessage, LanguageModel
from app.kit.tokens import count_tokens
from app.layers.ask import ask_model
from app.memos.answers import parse_highlights
from app.memos.highlights import Highlight
from app.memos.prompts import MEMO, memo_messages
from app.summarising.extractive import extract
from app.summarising.transcript import Utterance

ANSWER_TOKENS = 600
"""Room for three highlights, also in scripts that take many tokens."""

TEMPERATURE = 0.2

EXTRACT_TOKENS = 60
EXTRACT_VERSION = "extractive/1"

Origin = Literal["model", "extractive"]


@dataclass(frozen=True, slots=True)
class MemoDraft:
    """What a summariser made of a batch; no highlights is an empty memo."""

    highlights: Sequence[Highlight]
    origin: Origin
    model: str | None
    prompt_version: str | None


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
        """Ask for highlights. Raises ModelError, also for an answer that cannot be read, and DoesNotFit."""

        def build(budget_tokens: int, _complaint: str | None) -> list[ChatMessage]:
            return memo_messages(
                request.batch,
                language=request.language,
                characters=request.characters,
                instruction=request.instruction,
                prompt=self._prompt,
                budget_tokens=budget_tokens,
                count_tokens=count_tokens,
            )

        answer = await ask_model(
            self._model, build, parse_highlights, answer_tokens=ANSWER_TOKENS, temperature=TEMPERATURE
        )
        return MemoDraft(answer.value, self.origin, answer.model, self._prompt.version)


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
