"""Asks a model to write as a character: a new entry, or the older part of the diary anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from app.chats.characters import find_persona
from app.diary.answers import parse_diary, parse_diary_entry
from app.diary.prompts import DatedEntry, diary_entry_messages, diary_messages
from app.diary.queries import Cast, Written
from app.diary.wording import word_date
from app.kit.fillable import Fillable
from app.kit.llm import ChatMessage, LanguageModel
from app.kit.tokens import count_tokens
from app.layers.ask import ask_model
from app.narratives.service import FoldDraft
from app.summarising.fitting import DoesNotFit
from app.summarising.source import Source
from app.summarising.transcript import Utterance

FOLD_TOKENS = 1_000
"""Room for 300 words, also in scripts that take many tokens."""

ENTRY_TOKENS = 400
"""Room for four sentences, likewise."""

TEMPERATURE = 0.5

NAMELESS = "Character"
"""What a character is called that nobody has named, in a prompt as in the transcript."""


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """What a character wrote; no content where nothing mattered to it."""

    content: str | None
    model: str | None
    prompt_version: str | None


async def ask_for_diary(
    model: LanguageModel,
    prompt: Fillable,
    character: str,
    cast: Cast,
    former: str,
    entries: Sequence[Written],
) -> FoldDraft:
    """The older part of a diary anew, with `entries` folded into `former`. Raises ModelError."""

    def build(budget_tokens: int, _complaint: str | None) -> list[ChatMessage]:
        return diary_messages(
            former,
            dated(entries, cast.time_zone),
            name=character or NAMELESS,
            persona=find_persona(cast.characters, character),
            language=cast.language,
            prompt=prompt,
            budget_tokens=budget_tokens,
            count_tokens=count_tokens,
        )

    read = partial(parse_diary, former=former)
    answer = await ask_model(model, build, read, answer_tokens=FOLD_TOKENS, temperature=TEMPERATURE)
    return FoldDraft(answer.value, "model", answer.model, prompt.version)


async def ask_for_entry(
    model: LanguageModel,
    prompt: Fillable,
    character: str,
    source: Source,
    last: Sequence[Written],
) -> EntryDraft:
    """What the character writes about `source`, knowing its `last` entries. Raises ModelError.

    Of more messages than the model takes in at once it is the newest that fit: they are remembered best.
    """
    zone = ZoneInfo(source.time_zone)

    def build(budget_tokens: int, _complaint: str | None) -> list[ChatMessage]:
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

    answer = await ask_model(model, build, parse_diary_entry, answer_tokens=ENTRY_TOKENS, temperature=TEMPERATURE)
    return EntryDraft(answer.value, answer.model, prompt.version)


def _find_name(said: Sequence[Utterance]) -> str:
    """What somebody whom the chat does not name is called in the transcript, if whoever speaks is one."""
    names = {one.name for one in said if one.role == "assistant"}
    return names.pop() if len(names) == 1 else NAMELESS


def dated(entries: Sequence[Written], time_zone: str) -> list[DatedEntry]:
    """Entries with their days, for a prompt."""
    return [DatedEntry(word_date(entry.dated_at, time_zone), entry.content) for entry in entries]
