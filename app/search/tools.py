"""The tool with which a character searches its memory."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.chats.characters import list_known_names, name_speakers
from app.chats.service import get_line
from app.chats.settings import effective
from app.kit.wire import Text
from app.knowledge.known import drop_repeated, fold
from app.layers.tool import Answer, Tool, ToolCall, read
from app.memories.book import MemoryView, list_by_id, list_sources, view_chat
from app.memories.memory import Memory
from app.messages.range_reads import list_message_ids
from app.passages.words import find_search_terms
from app.search.choice import Hit
from app.search.meaning import embed_query
from app.search.service import Searched, may_see_others, search

KIND = "memory"


class MemorySearch(BaseModel):
    """The arguments of `memory_search`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"query": "the brass key", "limit": 5}]})

    query: Annotated[Text, Field(min_length=1, max_length=1_000)] = Field(
        description="What to look for: names, things, places; at most 1,000 characters. One of the words is enough."
    )
    limit: int = Field(10, ge=1, le=50, description="How many results to return, 1 to 50.")


async def _search(call: ToolCall, arguments: MemorySearch) -> Answer:
    db_session = call.db_session
    chat = await get_line(db_session, call.ref, None)
    names = list_known_names(chat.characters, chat.user_name)
    terms = find_search_terms(arguments.query, chat.language, names)
    meaning = await embed_query(call.embedder, arguments.query)
    if not terms and meaning is None:
        return read("The query has no word to search for. Name a person, a thing, a place or an event.")
    view = await view_chat(db_session, call.ref, character=call.character)
    searched = Searched(
        call.ref.key,
        chat.line_id,
        chat.head_seq,
        view.viewpoint.character,
        name_speakers(chat.characters, chat.user_name),
        only_chat=call.ref.only_chat,
        language=chat.language,
        with_shared=may_see_others(effective(chat.settings)),
    )
    aged_at = view.find_age_time(call.now)
    found = await search(db_session.raw, searched, terms, meaning, now=aged_at, names=names)
    wanted = {UUID(hit.id) for hit in found if hit.kind == KIND}
    memories = await list_by_id(db_session, view, wanted, now=call.now)
    hits = _drop_repeated(found, memories)[: arguments.limit]
    if not hits:
        words = " ".join(arguments.query.split())
        return read(f"Nothing was found for “{words}”. Try other words. Do not claim to remember it.")
    sources = await _list_sources(call, view, searched, hits, memories)
    return read("\n".join(["Found, the best result first:", *[_word(hit, sources[hit.source]) for hit in hits]]))


def _drop_repeated(hits: Sequence[Hit], memories: Sequence[Memory]) -> list[Hit]:
    """Return results, of memories with the same text only that of the nearest scope; `memories` are those found.

    It takes the place of the best result that has the text.
    """
    of_source = {f"{KIND}:{one.memory_id}": fold(one.content) for one in memories}
    nearest = {fold(one.content): f"{KIND}:{one.memory_id}" for one in drop_repeated(memories)}
    found = {hit.source: hit for hit in hits}
    sources = [nearest[of_source[source]] if source in of_source else source for source in found]
    return [found[source] for source in dict.fromkeys(sources)]


async def _list_sources(
    call: ToolCall, view: MemoryView, line: Searched, hits: Sequence[Hit], memories: Sequence[Memory]
) -> Mapping[str, str]:
    """Return in words which messages of this chat each result comes from; "" if it comes from none of them."""
    db_session = call.db_session
    seqs = sorted({seq for hit in hits for seq in (hit.first_seq, hit.last_seq)})
    ids = await list_message_ids(db_session.raw, (line.chat_key, line.line_id), seqs)
    found = {hit.source: _word_range(ids.get(hit.first_seq), ids.get(hit.last_seq)) for hit in hits}
    shown = [one for one in memories if f"{KIND}:{one.memory_id}" in found]
    sources = await list_sources(db_session, view, shown) if shown else {}
    for one in shown:
        messages = sources.get(one.statement_id, [])
        words = ", ".join(source.partition(":")[2] for source in messages)
        found[f"{KIND}:{one.memory_id}"] = f"message{'s' if len(messages) > 1 else ''} {words}" if messages else ""
    return found


def _word_range(first: str | None, last: str | None) -> str:
    if first is None or last is None:
        return ""
    return f"message {first}" if first == last else f"messages {first} to {last}"


def _word(hit: Hit, sources: str) -> str:
    if hit.kind == "message":
        return f"{hit.line} (message {hit.id})"
    return f"{hit.line} ({hit.kind} {hit.id}{f'; from {sources}' if sources else ''})"


MEMORY_SEARCH = Tool(
    name="memory_search",
    description=(
        "Search your memory and the earlier conversation, for what is not in front of you: before you say that you do "
        "not remember, or when the other speaks of something from long ago."
    ),
    arguments=MemorySearch,
    example={"query": "the brass key", "limit": 5},
    run=_search,
    is_offered=lambda settings: settings.recall.mode != "off",
)
