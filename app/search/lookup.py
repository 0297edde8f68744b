"""A person's search: in a line of a chat, or in all chats of a user that permit it."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from app.chats.characters import accepts, find_meant, list_known_names, name_speakers, word_spoken, word_unknown
from app.chats.chat_lock import ChatRef
from app.chats.errors import LineNotFound
from app.chats.service import get_line
from app.chats.settings import effective
from app.facts.book import list_held
from app.kit.db import DbSession
from app.kit.errors import Invalid, NotFound
from app.kit.ids import chat_key, user_key
from app.kit.paging import MAX_PAGE_BYTES, count_fitting
from app.knowledge.reading import Viewpoint, list_sources_on_line
from app.knowledge.scopes import ScopeKey
from app.memories.book import MemoryView, list_strongest
from app.passages.keys import list_wanted
from app.passages.words import find_search_terms, has_frequent, list_patterns
from app.scenes.book import get_scene
from app.scenes.errors import SceneNotFound
from app.search import queries
from app.search.cutting import cut_texts
from app.search.meant import find_words_meant
from app.search.queries import QueryVector, Sources, Texts, Wanted
from app.search.ranking import Candidate, Scored, find_similarities, rank
from app.search.schemas import SearchIn
from app.search.service import may_see_others, statements_in_use
from app.search.snippets import make_snippet
from app.search.stems import Stem, stemmer_of, stemmer_of_all, with_stems

MAX_SOURCES = 50
"""A result names at most this many of the messages that it comes from; only a fact names all of them."""

MAX_WIDE_MEMORIES = 1_000
"""At most this many memories of a user's own scope are searched: the strongest ones."""

Row = Mapping[str, Any]
"""A text that was found, with the columns that `queries.look_up_in_chat` returns."""


class _Terms(NamedTuple):
    """The terms of a query, the function that stems words, and for each misspelt term the word that is meant."""

    all: Sequence[str]
    stem: Stem
    meant: Mapping[str, str] = {}


class _Found(NamedTuple):
    row: Row
    scored: Scored

    @property
    def kind(self) -> str:
        """The kind of its source: `memory`, `message`, `scene`."""
        return str(self.row["source"]).partition(":")[0]

    @property
    def id(self) -> str:
        """The id of its source."""
        return str(self.row["source"]).partition(":")[2]

    @property
    def first_seq(self) -> int:
        """The seq of the first message that it is about, or of the message that it follows; 0 if there is none."""
        return int(self.row["first_seq"] or self.row["last_seq"])

    @property
    def ranges(self) -> Collection[tuple[int, int]]:
        """The ranges of seqs of the messages that it is about; for a memory only the first and the last of them.

        For a text about no message, this is the message that it follows.
        """
        first, last = self.first_seq, self.row["last_seq"]
        return dict.fromkeys([(first, first), (last, last)]) if self.kind == "memory" else [(first, last)]

    @property
    def line(self) -> tuple[UUID, UUID]:
        """The key of its chat, and the id of the line."""
        return self.row["chat_key"], self.row["line_id"]


async def search_chat(
    db_session: DbSession,
    ref: ChatRef,
    asked: SearchIn,
    meaning: QueryVector | None = None,
    *,
    now: datetime,
    with_shared: bool = True,
) -> dict[str, Any]:
    """Return what a chat knows about a query (`SearchOut`).

    Texts of the user's other chats that the chat sees are found only if `with_shared`.

    Raises ChatNotFound, LineNotFound, SceneNotFound, and Invalid for a character that the chat does not have.
    """
    chat = await get_line(db_session, ref, asked.line)
    scene = await get_scene(db_session, ref, asked.scene, line=asked.line) if asked.scene else None
    stem = stemmer_of(chat.language)
    names = list_known_names(chat.characters, chat.user_name)
    terms = find_search_terms(asked.query, chat.language, names)
    if asked.character is not None and not accepts(chat.characters, asked.character):
        message = word_unknown(chat.characters)
        raise Invalid(f"character: {message}", errors=[{"loc": ["body", "character"], "msg": message}])
    wanted = _wanted(asked, terms, stem, now)
    if asked.character is not None:
        wanted = wanted._replace(character=find_meant(chat.characters, asked.character))
    if scene is not None and scene.scene is not None:
        wanted = wanted._replace(first_seq=scene.first_seq, last_seq=scene.scene.last_seq)
    line = (ref.key, chat.line_id)
    used = statements_in_use(with_vectors=meaning is not None)
    sees_others = with_shared and may_see_others(effective(chat.settings))
    statement = used.shared_of_chat if sees_others else used.of_chat
    if ref.only_chat:
        statement = used.own_of_chat
    texts, meant = Texts([]), dict[str, str]()
    if terms or meaning:
        texts = await queries.look_up_in_chat(db_session.raw, statement, line, wanted, meaning)
        speakers = name_speakers(chat.characters, chat.user_name)
        meant = await find_words_meant(
            db_session.raw, line, terms, texts.rows, language=chat.language, names=names, speakers=speakers
        )
    if meant:
        words = with_stems([*terms, *meant.values()], stem)
        wanted = wanted._replace(patterns=list_patterns(words), keys=list_wanted(words))
        texts = await queries.look_up_in_chat(db_session.raw, statement, line, wanted, meaning)
    asked_for = _Terms(terms, stem, meant)
    return await _answer(db_session, texts, asked_for, asked.limit, with_vectors=meaning is not None)


async def search_user(
    db_session: DbSession,
    tenant: str,
    user_id: str,
    asked: SearchIn,
    meaning: QueryVector | None = None,
    *,
    now: datetime,
) -> dict[str, Any]:
    """Return what is known about a query in a user's chats that have `search.across_chats`, and in the user's scope.

    The answer is a `SearchOut`. Words are compared by their stems if all these chats have the same stemmer. Frequent
    words of English are left out of the query, unless each of these chats has a language and it is not English.

    If a line or a scene is asked for, the answer is that of `search_chat` for its chat, without texts of other chats.
    Raises LineNotFound or SceneNotFound if none of these chats has the line or the scene, and what `search_chat`
    raises.
    """
    owner = user_key(tenant, user_id)
    if asked.line is not None or asked.scene is not None:
        chat_id = await _find_chat(db_session, owner, asked)
        ref = ChatRef(tenant, chat_id, chat_key(tenant, chat_id), only_user=user_id)
        return await search_chat(db_session, ref, asked, meaning, now=now, with_shared=False)
    languages = await queries.list_languages(db_session.raw, owner)
    stem = stemmer_of_all(languages)
    foreign = None if any(map(has_frequent, languages)) else next(iter(languages), None)
    terms = find_search_terms(asked.query, foreign)
    wanted = _wanted(asked, terms, stem, now)
    statement = statements_in_use(with_vectors=meaning is not None).of_user
    texts, wide = Texts([]), list[Row]()
    if terms or meaning:
        texts = await queries.look_up_of_user(db_session.raw, statement, owner, wanted, meaning)
        found = {row["source"] for row in texts.rows}
        wide = await _list_wide(db_session, ScopeKey.of_user(tenant, user_id), asked, found, now=now)
    return await _answer(db_session, texts, _Terms(terms, stem), asked.limit, wide, with_vectors=meaning is not None)


async def _find_chat(db_session: DbSession, owner: UUID, asked: SearchIn) -> str:
    """Return the id of the chat of the line that is asked for, or else of the scene; of a user's searched chats."""
    if asked.line is not None:
        found = await queries.find_chat(db_session.raw, owner, line=asked.line)
        unknown: NotFound = LineNotFound(f"No chat that is searched has the line {str(asked.line)!r}.")
    else:
        found = await queries.find_chat(db_session.raw, owner, scene=asked.scene)
        unknown = SceneNotFound(f"No chat that is searched has the closed scene {str(asked.scene)!r}.")
    if found is None:
        raise unknown
    return found


async def _list_wide(
    db_session: DbSession, scope: ScopeKey, asked: SearchIn, found: Collection[str], *, now: datetime
) -> list[Row]:
    """Return the memories and the facts of a user's own scope that are not in `found`, as rows about no message.

    A search that is limited to a time or to a character finds none of them.
    """
    if asked.after or asked.before or asked.character:
        return []
    rows: list[Row] = []
    if asked.kinds is None or "memory" in asked.kinds:
        memories = await list_strongest(db_session, MemoryView.of_scope(scope), MAX_WIDE_MEMORIES, now=now)
        rows += [_row(f"memory:{one.memory_id}", one.content, one.importance) for one in memories]
    if asked.kinds is None or "fact" in asked.kinds:
        facts = await list_held(db_session, Viewpoint.of_scope(scope))
        rows += [_row(f"fact:{one.statement_id}", f"{one.key}: {one.content}") for one in facts.values()]
    return [row for row in rows if row["source"] not in found]


def _row(source: str, text: str, importance: float | None = None) -> Row:
    empty = dict.fromkeys(("role", "name", "similarity", "chat_id", "chat_key", "line_id"))
    about_nothing = {"number": source, "first_seq": 0, "last_seq": 0, "head_seq": 0}
    return {**empty, **about_nothing, "source": source, "text": text, "importance": importance}


def _wanted(asked: SearchIn, terms: Sequence[str], stem: Stem, now: datetime) -> Wanted:
    words = with_stems(terms, stem)
    return Wanted(
        list_patterns(words),
        list_wanted(words),
        now,
        asked.character,
        asked.kinds,
        after=asked.after,
        before=asked.before,
    )


async def _answer(
    db_session: DbSession,
    texts: Texts,
    terms: _Terms,
    limit: int,
    wide: Sequence[Row] = (),
    *,
    with_vectors: bool,
) -> dict[str, Any]:
    found = (await asyncio.to_thread(_rank, texts, terms, wide))[:limit]
    found = found[: count_fitting((len(one.row["text"].encode()) for one in found), MAX_PAGE_BYTES)]
    sources = await _list_sources(db_session, found)
    mode = "hybrid" if with_vectors else "text"
    return {"mode": mode, "hits": await asyncio.to_thread(_present, found, sources, terms)}


def _rank(texts: Texts, terms: _Terms, wide: Sequence[Row] = ()) -> list[_Found]:
    """Return the texts that answer a query, best first; `wide` are further texts, which are about no message."""
    rows = [*map(dict, texts.rows), *wide]
    by_number = {str(row["number"]): row for row in _merge(rows)}
    speakers_of = cache(lambda characters, user_name: name_speakers(orjson.loads(characters), user_name))
    spoken = [_word(row, speakers_of) for row in by_number.values()]
    candidates = [
        Candidate(
            number,
            text,
            row["importance"],
            row["last_seq"],
            row["last_seq"] / (row["head_seq"] or 1),
            row["line_id"] if row["role"] else None,
            row["similarity"],
        )
        for (number, row), text in zip(by_number.items(), cut_texts(spoken), strict=True)
    ]
    total = texts.total + len(wide)
    ranked = rank(terms.all, candidates, total=total, stem=terms.stem, lowest=texts.lowest, meant=terms.meant)
    return [_Found(by_number[one.source], one) for one in ranked]


def _merge(rows: Sequence[Row]) -> Collection[Row]:
    """Return each text once: a message that was found by its words and by its meaning has two rows or more."""
    keys = [f"{row['chat_key']} {row['source']}" for row in rows]
    similarities = find_similarities((key, row["similarity"]) for key, row in zip(keys, rows, strict=True))
    return {key: {**row, "similarity": similarities.get(key)} for key, row in zip(keys, rows, strict=True)}.values()


def _word(row: Row, speakers_of: Callable[[str, str | None], Mapping[str, str]]) -> str:
    """Return the text that is compared with the query; for a message, it begins with the name of the speaker."""
    if row["role"] is None:
        return str(row["text"])
    return word_spoken(row["text"], row["role"], row["name"], speakers_of(row["characters"], row["user_name"]))


async def _list_sources(db_session: DbSession, found: Sequence[_Found]) -> list[Sources]:
    """Return the sources of each result, and when its last message was sent.

    The sources of a memory are the first and the last message that it was learnt from; those of a fact are all such
    messages. A text about no message has no sources; its time is that of the message that it follows.
    """
    ranges = [(at, *one.line, first, last) for at, one in enumerate(found) for first, last in one.ranges]
    listed = await queries.list_sources(db_session.raw, [of for _, *of in ranges], MAX_SOURCES) if ranges else []
    messages: dict[int, list[str]] = {}
    sent_at: dict[int, datetime | None] = {}
    for (at, *_), of_range in zip(ranges, listed, strict=True):
        if found[at].row["first_seq"]:
            messages.setdefault(at, []).extend(of_range.names)
        sent_at[at] = of_range.sent_at
    facts: dict[tuple[UUID, UUID], list[UUID]] = {}
    for one in found:
        if one.kind == "fact" and one.row["chat_key"]:
            facts.setdefault(one.line, []).append(UUID(one.id))
    taught: dict[str, list[str]] = {}
    for line, statement_ids in facts.items():
        on_line = await list_sources_on_line(db_session, line, statement_ids)
        taught |= {str(statement_id): sources for statement_id, sources in on_line.items()}
    return [
        Sources(taught.get(one.id, ()) if one.kind == "fact" else messages.get(at, ()), sent_at.get(at))
        for at, one in enumerate(found)
    ]


def _present(found: Sequence[_Found], sources: Sequence[Sources], terms: _Terms) -> list[Any]:
    return [
        {
            "kind": "recap" if one.kind == "scene" else one.kind,
            "id": one.id,
            "chat_id": one.row["chat_id"],
            "text": one.row["text"],
            "snippet": make_snippet(one.row["text"], [*terms.all, *terms.meant.values()], terms.stem),
            "score": one.scored.score,
            "parts": {"vector": 0.0, **one.scored.parts},
            "sources": of.names,
            "first_seq": one.first_seq or None,
            "last_seq": one.row["last_seq"] or None,
            "sent_at": of.sent_at,
        }
        for one, of in zip(found, sources, strict=True)
    ]
