"""Learns facts and memories from a range of messages, by asking a model or by rule."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from app.consolidation.answers import profile_for
from app.consolidation.extractive import EXTRACT_VERSION, learn, promote
from app.consolidation.learnt import PROMOTION_IMPORTANCE, Learnt
from app.consolidation.prompts import consolidation_messages
from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.layers.ask import Inquiry, NoUsableAnswer, ask_model
from app.layers.derived import Origin
from app.summarising.extractive import Frequencies
from app.summarising.fitting import DoesNotFit
from app.summarising.judging.judge import Material
from app.summarising.source import Source
from app.summarising.times import word_time
from app.summarising.transcript import Utterance

ANSWER_TOKENS = 1_200
"""Room for ten items, also in languages that take many tokens of the model's own tokenizer."""

TEMPERATURE = 0.2

FULL_ITEMS = 10
"""The most items that the prompt asks for. An answer with so many items may be incomplete."""

LEAST_DIVIDED_MESSAGES = 16
"""The least number of messages that are divided. If the answer about them has FULL_ITEMS items or more, each half of
them is read again. If there are fewer messages, such an answer counts as complete. So 40 messages that fit the model's
context need at most seven answers: one about all, two about 20 each, four about 10 each."""

HISTORY_MESSAGES = 500
"""The number of messages in which the frequencies of words are counted: the last ones up to the end of the range."""


class Noted(NamedTuple):
    """A known fact with its key, or a known memory, whose key is None."""

    key: str | None
    content: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was learnt from a range.

    Attributes:
        origin: `model`, or `extractive` if the rules learnt it.
        model: The model's name; None for the rules.
        version: The version of the prompt or of the rules.
        learnt: Facts and memories.
        promoted: Memories that quote messages to which the caller gave a high importance. `store` leaves out those of
            messages from which a fact was learnt.
        refusals: Why answers of the model were refused, so that the rules were applied instead.

    """

    origin: Origin
    model: str | None
    version: str
    learnt: Sequence[Learnt]
    promoted: Sequence[Learnt] = field(default=())
    refusals: Sequence[Refusal] = ()


async def ask_for_learnt(inquiry: Inquiry, prompt: PromptTemplate, source: Source, known: Sequence[Noted]) -> Draft:
    """Return what the model learns from `source`. Raises ModelError, NoUsableAnswer, DoesNotFit.

    A range is divided if it does not fit the model's context, or if its answer may be incomplete (FULL_ITEMS).
    """
    found, model = await _ask(inquiry, prompt, source, source.utterances, known)
    return Draft("model", model, prompt.version, found)


def learn_by_rule(source: Source, history: Sequence[Utterance]) -> Draft:
    """Return what the rules of `extractive.py` find; `history` is the conversation up to the end of `source`.

    With long messages it takes long, so run it in a thread.
    """
    frequencies = Frequencies.of(history)
    found = learn(source.utterances, frequencies, given=source.importance, count_tokens=count_tokens)
    return Draft("extractive", None, EXTRACT_VERSION, found, quote_important(source, history, found))


def quote_important(source: Source, history: Sequence[Utterance], learnt: Sequence[Learnt]) -> list[Learnt]:
    """Return a memory of each message that the caller rated as important, unless `learnt` has a memory from it.

    Messages with facts have one, too, because it is not known yet whether the facts can be stored (`store`). A message
    without a sentence to quote has no memory; see `promote`.
    """
    heeded = {seq for one in learnt if one.kind == "memory" for seq in one.sources}
    given = {seq: value for seq, value in source.importance.items() if value > PROMOTION_IMPORTANCE}
    rated = [said for said in source.utterances if said.seq in given and said.seq not in heeded]
    if not rated:
        return []
    return promote(rated, Frequencies.of(history), given=given, count_tokens=count_tokens)


async def _ask(
    inquiry: Inquiry, prompt: PromptTemplate, source: Source, batch: Sequence[Utterance], known: Sequence[Noted]
) -> tuple[list[Learnt], str]:
    """Return what the model learns from `batch`, and the model's name.

    If the batch does not fit, its halves are read instead. An answer with FULL_ITEMS items may be incomplete: each half
    of the batch is then read again, except in a batch of fewer than LEAST_DIVIDED_MESSAGES messages.
    """
    found: list[Learnt] = []
    try:
        found, model = await _ask_at_once(inquiry, prompt, source, batch, known)
    except DoesNotFit:
        if len(batch) == 1:
            raise
        return found, await _ask_halves(inquiry, prompt, source, batch, known, found)
    if len(found) >= FULL_ITEMS and len(batch) >= LEAST_DIVIDED_MESSAGES:
        await _ask_halves(inquiry, prompt, source, batch, known, found, optional=True)
    return found, model


async def _ask_halves(
    inquiry: Inquiry,
    prompt: PromptTemplate,
    source: Source,
    batch: Sequence[Utterance],
    known: Sequence[Noted],
    found: list[Learnt],
    *,
    optional: bool = False,
) -> str:
    """Add to `found` what the model learns from each half of `batch`, and return the model's name.

    With `optional`, a half without a usable answer adds nothing; otherwise NoUsableAnswer is raised.
    """
    half, model = len(batch) // 2, ""
    for part in (batch[:half], batch[half:]):
        # Items that come from messages of `part` are listed first, because the model is most likely to repeat them.
        near = sorted(found, key=lambda one: one.sources[-1] < part[0].seq or one.sources[0] > part[-1].seq)
        noted = [*(Noted(one.key, one.content) for one in near), *known]
        with suppress(*([NoUsableAnswer] if optional else [])):
            more, model = await _ask(inquiry, prompt, source, part, noted)
            found += more
    return model


async def _ask_at_once(
    inquiry: Inquiry, prompt: PromptTemplate, source: Source, batch: Sequence[Utterance], known: Sequence[Noted]
) -> tuple[list[Learnt], str]:
    """Return what one answer contains, and the model's name."""

    def build(budget_tokens: int) -> list[ChatMessage]:
        return consolidation_messages(
            batch,
            known=known,
            times={seq: word_time(at, source.time_zone) for seq, at in source.sent_at.items()},
            characters=source.names,
            user_name=source.user_name,
            language=source.language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    material = Material([said.text for said in batch], language=source.language, names=source.speakers)
    profile = profile_for([said.seq for said in batch])
    answer = await ask_model(inquiry, build, profile, material, answer_tokens=ANSWER_TOKENS, temperature=TEMPERATURE)
    return answer.value, answer.model
