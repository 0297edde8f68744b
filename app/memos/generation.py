"""Two summarisers with one interface: one calls a model, the other quotes sentences."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.layers.ask import Inquiry, ask_model
from app.memos.answers import MEMO_PROFILE
from app.memos.highlights import Highlight
from app.memos.prompts import MEMO, NO_CONTEXT, MemoContext, memo_messages
from app.summarising.extractive import extract
from app.summarising.judging.judge import Material
from app.summarising.transcript import Utterance

ANSWER_TOKENS = 600
"""Enough for three highlights, even in scripts that need many tokens."""

TEMPERATURE = 0.2

EXTRACT_TOKENS = 60
EXTRACT_VERSION = "extractive/1"

Origin = Literal["model", "extractive"]


@dataclass(frozen=True, slots=True)
class MemoDraft:
    """The result of a summariser; without highlights, the memo gets the status `empty`.

    If sentences are quoted because the model's answers were refused, `refusals` are the reasons.
    """

    highlights: Sequence[Highlight]
    origin: Origin
    model: str | None
    prompt_version: str | None
    refusals: Sequence[Refusal] = ()


@dataclass(frozen=True, slots=True)
class MemoRequest:
    """The input of a summariser.

    Attributes:
        batch: The eligible messages.
        corpus: The batch, preceded by up to `corpus_messages` earlier messages, for word frequencies. The model's
            summariser does not use it.
        characters: Names of the chat's characters.
        user_name: The user's name, if it is known.
        language: The chat's language (BCP 47); None if it is unknown.
        instruction: A person's instruction for this one generation.
        context: Information that helps the model to understand the batch.

    """

    batch: Sequence[Utterance]
    corpus: Sequence[Utterance]
    characters: Sequence[str]
    user_name: str | None
    language: str | None
    instruction: str | None
    context: MemoContext = NO_CONTEXT


class Summariser(Protocol):
    """Summarises a batch."""

    @property
    def origin(self) -> Origin:
        """The origin of its memos."""
        ...

    @property
    def corpus_messages(self) -> int:
        """How many messages before the batch it needs for word frequencies; 0 for the model, which reads `context`."""
        ...

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Return the memo of a batch. Raises ModelError, NoUsableAnswer, DoesNotFit."""
        ...


class ModelSummariser:
    """Asks a model for highlights."""

    origin: Origin = "model"
    corpus_messages = 0

    def __init__(self, inquiry: Inquiry, prompt: PromptTemplate = MEMO) -> None:
        self._inquiry = inquiry
        self._prompt = prompt

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Return the highlights that the model answers. Raises ModelError, NoUsableAnswer, DoesNotFit."""

        def build(budget_tokens: int) -> list[ChatMessage]:
            return memo_messages(
                request.batch,
                context=request.context,
                language=request.language,
                characters=request.characters,
                user_name=request.user_name,
                instruction=request.instruction,
                prompt=self._prompt,
                budget_tokens=budget_tokens,
                count_tokens=count_tokens,
            )

        material = Material(
            [said.text for said in request.batch],
            language=request.language,
            names={*request.characters, *(said.name for said in request.batch)},
            wished=request.instruction is not None,
        )
        answer = await ask_model(
            self._inquiry, build, MEMO_PROFILE, material, answer_tokens=ANSWER_TOKENS, temperature=TEMPERATURE
        )
        return MemoDraft(answer.value, self.origin, answer.model, self._prompt.version)


class ExtractiveSummariser:
    """Quotes the weightiest sentences, without a model; the origin of its memos is `extractive`."""

    origin: Origin = "extractive"
    corpus_messages = 500

    async def summarise(self, request: MemoRequest) -> MemoDraft:
        """Return the quoted sentences; never fails. Runs in a thread: long messages would block the event loop."""
        lines = await asyncio.to_thread(
            extract, request.batch, request.corpus, budget_tokens=EXTRACT_TOKENS, count_tokens=count_tokens
        )
        return MemoDraft([Highlight(line) for line in lines], self.origin, None, EXTRACT_VERSION)


def choose_summariser(inquiry: Inquiry | None, prompt: PromptTemplate = MEMO) -> Summariser:
    """Return the summariser that asks a model with `prompt`, or the extractive one if there is no model."""
    return ModelSummariser(inquiry, prompt) if inquiry else ExtractiveSummariser()
