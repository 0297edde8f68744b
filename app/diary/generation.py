"""Asks a model to write as a character: a new entry, or a new version of the folded part of the diary."""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from app.chats.characters import find_persona, list_known_names
from app.diary.answers import DIARY_ENTRY_PROFILE, DIARY_PROFILE
from app.diary.prompts import DatedEntry, diary_entry_messages, diary_messages
from app.diary.queries import Cast
from app.diary.wording import Written, word_date
from app.kit.job_context import PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.tokens import count_tokens
from app.layers.ask import Inquiry, ask_model
from app.narratives.service import FoldDraft
from app.summarising.fitting import DoesNotFit
from app.summarising.judging.judge import Material
from app.summarising.source import Source
from app.summarising.transcript import Utterance

FOLD_TOKENS = 1_000
"""The maximum tokens of a fold: enough for 300 words, even in scripts that need many tokens."""

ENTRY_TOKENS = 400
"""The maximum tokens of an entry: enough for four sentences, even in scripts that need many tokens."""

TEMPERATURE = 0.5

NAMELESS = "Character"
"""The name of an unnamed character, in a prompt and in the transcript."""


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """An entry that a character wrote; without content if nothing mattered to the character."""

    content: str | None
    model: str | None
    prompt_version: str | None


async def ask_for_diary(
    inquiry: Inquiry,
    prompt: PromptTemplate,
    character: str,
    cast: Cast,
    former: str,
    entries: Sequence[Written],
) -> FoldDraft:
    """Return the folded part of a diary, with `entries` folded into `former`.

    Raises ModelError, NoUsableAnswer, DoesNotFit.
    """

    def build(budget_tokens: int) -> list[ChatMessage]:
        return diary_messages(
            former,
            dated(entries, cast.time_zone),
            name=character or NAMELESS,
            persona=find_persona(cast.characters, character),
            user_name=cast.user_name,
            language=cast.language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    material = Material(
        [entry.content for entry in entries],
        former,
        language=cast.language,
        name=character,
        names=list_known_names(cast.characters, cast.user_name),
    )
    answer = await ask_model(
        inquiry, build, DIARY_PROFILE, material, answer_tokens=FOLD_TOKENS, temperature=TEMPERATURE
    )
    return FoldDraft(answer.value, "model", answer.model, prompt.version)


async def ask_for_entry(
    inquiry: Inquiry,
    prompt: PromptTemplate,
    character: str,
    source: Source,
    last: Sequence[Written],
) -> EntryDraft:
    """Return the character's entry about `source`, given its `last` entries.

    Raises ModelError, NoUsableAnswer, DoesNotFit.
    If the messages do not fit the model's context, the older half of them is left out, repeatedly until they fit.
    """
    zone = ZoneInfo(source.time_zone)

    def build(budget_tokens: int) -> list[ChatMessage]:
        said = source.utterances
        while True:
            try:
                return build_about(said, budget_tokens)
            except DoesNotFit:
                if len(said) <= 1:
                    raise
            said = said[len(said) // 2 :]

    def build_about(said: Sequence[Utterance], budget_tokens: int) -> list[ChatMessage]:
        return diary_entry_messages(
            said,
            name=character or _find_name(said),
            persona=find_persona(source.characters, character),
            user_name=source.user_name,
            entries=dated(last, source.time_zone),
            times={seq: f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for seq, at in source.sent_at.items()},
            language=source.language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    material = Material(
        [said.text for said in source.utterances], language=source.language, name=character, names=source.speakers
    )
    answer = await ask_model(
        inquiry, build, DIARY_ENTRY_PROFILE, material, answer_tokens=ENTRY_TOKENS, temperature=TEMPERATURE
    )
    return EntryDraft(answer.value, answer.model, prompt.version)


def _find_name(said: Sequence[Utterance]) -> str:
    """Return the name of the assistant's messages if they share one, else `NAMELESS`."""
    names = {one.name for one in said if one.role == "assistant"}
    return names.pop() if len(names) == 1 else NAMELESS


def dated(entries: Sequence[Written], time_zone: str) -> list[DatedEntry]:
    """Return entries with their dates, for a prompt."""
    return [DatedEntry(word_date(entry.dated_at, time_zone), entry.content) for entry in entries]
