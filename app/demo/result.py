"""The result of a replay: reads the memories from the service and formats them."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from app.chats.characters import list_active, list_names
from app.chats.settings import ChatSettings
from app.consolidation.settings import ConsolidationSettings
from app.demo.api import Api
from app.demo.replay import Played
from app.demo.show import word_context, word_savings
from app.demo.show_learnt import word_blocks, word_learnt
from app.demo.show_memory import word_book, word_diary, word_recap, word_scenes, word_summary
from app.demo.show_recalled import word_recalled, word_unasked
from app.demo.words import Calendar
from app.diary.settings import DiarySettings
from app.memories.settings import MemorySettings
from app.memos.settings import MemoSettings
from app.scenes.settings import SceneSettings
from app.summary.settings import SummarySettings


async def word_result(
    api: Api, chat: str, state: Mapping[str, Any], settings: ChatSettings, played: Played, question: str | None = None
) -> list[str]:
    """Return the lines of the result: the memories, then the context and the savings of the prompt cache.

    Args:
        api: The service.
        chat: The path of the chat.
        state: The chat as the service returns it.
        settings: The settings of the chat.
        played: The replay.
        question: The query for recall. If it is None, or the chat's `recall.mode` is `off`, no recall is shown.

    Raises:
        DemoError: The service rejects a request or does not respond.

    """
    calendar = Calendar(played.times, state["time_zone"])
    entries = await api.get_all(f"{chat}/diary")
    lines: list[str] = []
    if MemoSettings.of(settings).enabled:
        lines += word_book(await api.get_all(f"{chat}/memos"), calendar, state["anchor_seq"])
    if DiarySettings.of(settings).enabled:
        lines += await _word_diaries(api, chat, entries, _names(state), calendar)
    if SummarySettings.of(settings).enabled:
        lines += word_summary(await api.get(f"{chat}/summary"))
    if SceneSettings.of(settings).enabled:
        lines += word_scenes(await api.get_all(f"{chat}/scenes"), calendar, await _list_hidden(api, chat))
        lines += word_recap(await api.get(f"{chat}/recap"))
    if ConsolidationSettings.of(settings).enabled:
        lines += await _word_learnt(api, chat, MemorySettings.of(settings).half_life_days)
    character = _choose_character(_names(state), entries)
    context = await api.get(f"{chat}/context", format="text", **({"character": character} if character else {}))
    lines += word_context(context, await api.get_all(f"{chat}/inclusion"), character=character)
    if settings.recall.mode == "auto":
        lines += word_unasked(context)
    if question and settings.recall.mode != "off":
        asked = {"query": question, "recall": "auto"} | ({"character": character} if character else {})
        lines += word_recalled(question, await api.get(f"{chat}/context", **asked))
    lines += word_savings(played.account)
    return lines


async def _word_diaries(
    api: Api, chat: str, entries: Sequence[Mapping[str, Any]], names: Sequence[str], calendar: Calendar
) -> list[str]:
    """Return the lines of the diary of each character with entries; if there are none, of the first character."""
    wrote = list(dict.fromkeys(entry["character"] for entry in entries))
    lines: list[str] = []
    for name in wrote or names[:1]:
        own = [entry for entry in entries if entry["character"] == name]
        folded = await api.get(f"{chat}/diary/folded", **({"character": name} if name else {}))
        lines += word_diary(name, own, folded, calendar)
    return lines


async def _word_learnt(api: Api, chat: str, half_life_days: float) -> list[str]:
    """Return the lines of facts with their former values, memories, and core blocks."""
    facts, memories = await api.get_all(f"{chat}/facts"), await api.get_all(f"{chat}/memories")
    values = {fact["id"]: await api.get_all(f"{chat}/facts/{quote(fact['key'], safe='')}/history") for fact in facts}
    archived = await api.get_all(f"{chat}/memories", archived=True)
    has_model = (await api.get("/readyz"))["model"] == "configured"
    learnt = word_learnt(facts, memories, archived, values=values, half_life_days=half_life_days, has_model=has_model)
    return [*learnt, *word_blocks(await api.get_all(f"{chat}/blocks"))]


def _choose_character(names: Sequence[str], entries: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the character to assemble the context for: the last one that wrote an entry, else the first.

    Returns None if the chat has fewer than two characters, because the service then needs none.
    """
    wrote = [entry["character"] for entry in entries if entry["character"] in names]
    return [*names[:1], *wrote][-1] if len(names) > 1 else None


def _names(state: Mapping[str, Any]) -> list[str]:
    return list_names(list_active(state["characters"]))


async def _list_hidden(api: Api, chat: str) -> list[int]:
    messages = await api.get_all(f"{chat}/messages")
    return [message["seq"] for message in messages if message["hidden_by"] == "scenes"]
