"""Runs the statements of a search, and reads the messages that results come from."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.kit.db import Connection
from app.kit.planner import ONE_LOOKUP_EACH
from app.layers.documents import Fading
from app.messages.range_reads import list_newest_of_ranges
from app.search.statements import MAX_MESSAGE_TOKENS, OF_USER

_CHAT_THAT_HAS = f"""
    SELECT c.chat_id FROM chats c CROSS JOIN LATERAL ({{part}} {ONE_LOOKUP_EACH}) AS part
    WHERE {OF_USER} ORDER BY c.created_at, c.chat_key LIMIT 1"""  # noqa: S608 - of constants

_CHAT_OF_LINE = _CHAT_THAT_HAS.format(part="SELECT 1 FROM chats l WHERE l.chat_key = c.chat_key AND l.line_id = $2")

_CHAT_OF_SCENE = _CHAT_THAT_HAS.format(
    part="""
        SELECT 1 FROM scenes s WHERE s.chat_key = c.chat_key AND s.line_id = c.line_id AND s.scene_id = $2
            AND s.lifted_at IS NULL"""
)


class Question(NamedTuple):
    """What is searched, and where.

    Attributes:
        chat_key: The chat's key.
        line_id: The line.
        patterns: Substrings of the texts in lower case; a text is found if it contains one of them.
        keys: The keys that the index of messages has for the words of the query, their other forms and similar words.
        character: The character whose prompt is made, if known.
        now: The service's time.
        before_seq: Only texts about messages before this seq are found; None finds all.
        kinds_left_out: The kinds of sources that are not searched.
        left_out: Sources that are not searched.
        most_tokens: Messages with more tokens are not searched.
        kinds_listed: All texts of these kinds of sources are returned, whether or not they match.
        fading: How the age of a memory affects the search (`Fading`).
        with_similarities: Whether the cosines of the layers' texts are returned, too (`Texts.similarities`).

    """

    chat_key: UUID
    line_id: UUID
    patterns: Sequence[str]
    keys: Sequence[str]
    character: str | None
    now: datetime
    before_seq: int | None = None
    kinds_left_out: Sequence[str] = ()
    left_out: Sequence[str] = ()
    most_tokens: int = MAX_MESSAGE_TOKENS
    kinds_listed: Sequence[str] = ()
    fading: Fading = "archives"
    with_similarities: bool = False


class Wanted(NamedTuple):
    """What a person's search looks for.

    Attributes:
        patterns: Substrings of the texts in lower case; a text is found if it contains one of them.
        keys: The keys that the index of messages has for the words of the query, their other forms and similar words.
        now: The service's time.
        character: Only what this character said or wrote, and what its prompt could contain; None finds all.
        kinds: The kinds of results; None finds all.
        first_seq: Only what is about messages from this seq on.
        last_seq: Only what is about messages up to this seq, inclusive.
        after: Only what is about messages that were sent after this time.
        before: Only what is about messages that were sent before this time.

    """

    patterns: Sequence[str]
    keys: Sequence[str]
    now: datetime
    character: str | None = None
    kinds: Sequence[str] | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    after: datetime | None = None
    before: datetime | None = None


class QueryVector(NamedTuple):
    """The vector of a query, as pgvector reads it, and the name of its model."""

    text: str
    model: str


class Texts(NamedTuple):
    """The texts that may answer a query, not ranked yet.

    Attributes:
        rows: Columns of `Document`, and `role`, `name` and `similarity`. `role` and `name` are those of a message,
            otherwise None. `similarity` is the cosine, None for a text without a vector. A message that was found by
            its words and by its meaning has two rows or more.
        total: How many texts were searched.
        lowest: The lowest cosine in a sample of the chat's messages; None without vectors.
        unrelated: The cosine of unrelated texts (`embeddings.scale`); None without vectors, or if it is not measured.
        similarities: The cosines of the layers' texts by digest (`passages.lookup`), if the question asks for them.

    """

    rows: Sequence[Mapping[str, Any]]
    total: int = 0
    lowest: float | None = None
    unrelated: float | None = None
    similarities: Mapping[bytes, float] = {}


async def list_candidates(
    connection: Connection, statement: str, question: Question, meaning: QueryVector | None = None
) -> Texts:
    """Return the texts that may answer a question.

    These are at most MAX_CANDIDATES texts that contain a pattern or have one of the keys, and all texts of the
    question's `kinds_listed`; with the query's vector also at most MAX_NEAR messages and MAX_NEAR_TEXTS texts of layers
    with a similar meaning. `meaning` is given if the statement is one with vectors.
    """
    given = (
        question.chat_key,
        question.line_id,
        question.character,
        question.now,
        question.before_seq,
        question.kinds_left_out,
        question.left_out,
        question.patterns,
        question.most_tokens,
        question.keys,
        question.kinds_listed,
        question.fading,
    )
    return await _search(connection, statement, given, (*meaning, question.with_similarities) if meaning else ())


async def look_up_in_chat(
    connection: Connection, statement: str, line: tuple[UUID, UUID], wanted: Wanted, meaning: QueryVector | None = None
) -> Texts:
    """Return the texts of a line that may answer a person's search, each with the columns of its chat.

    These are at most MAX_LOOKED_UP texts that are found by their words; with `meaning` also at most MAX_NEAR messages
    and MAX_NEAR_TEXTS texts of layers with a similar meaning.
    """
    chat_key, line_id = line
    given = (chat_key, *wanted[2:], wanted.patterns, line_id, wanted.keys)
    return await _search(connection, statement, given, meaning or ())


async def look_up_of_user(
    connection: Connection, statement: str, user_key: UUID, wanted: Wanted, meaning: QueryVector | None = None
) -> Texts:
    """Return what `look_up_in_chat` returns, of the current lines of a user's chats that have `search.across_chats`."""
    return await _search(connection, statement, (user_key, *wanted[2:], wanted.patterns, wanted.keys), meaning or ())


async def list_languages(connection: Connection, user_key: UUID) -> list[str | None]:
    """Return the different languages of the chats that `look_up_of_user` searches; None for a chat without one."""
    rows = await connection.fetch(f"SELECT DISTINCT c.language FROM chats c WHERE {OF_USER}", user_key)  # noqa: S608
    return [row["language"] for row in rows]


async def find_chat(
    connection: Connection, user_key: UUID, *, line: UUID | None = None, scene: UUID | None = None
) -> str | None:
    """Return the id of the chat with a line, or without `line` of the chat whose current line has a closed scene.

    Only chats that `look_up_of_user` searches are considered, and None is returned if none of them has it. Copies of a
    chat can have the same lines and scenes; of these, the oldest is returned.
    """
    statement, wanted = (_CHAT_OF_LINE, line) if line is not None else (_CHAT_OF_SCENE, scene)
    found: str | None = await connection.fetchval(statement, user_key, wanted)
    return found


async def _search(connection: Connection, statement: str, given: Sequence[Any], meaning: Sequence[Any]) -> Texts:
    """Run a search, and repeat it as a deep one if its limits left out messages and it found few."""
    rows: list[Any] = await connection.fetch(statement, *given, False, *meaning)
    if rows[0]["is_cut"]:
        rows = await connection.fetch(statement, *given, True, *meaning)
    first = rows[0]
    found = [row for row in rows if row["source"] is not None]
    similarities = {row["near_digest"]: row["similarity"] for row in rows if row.get("near_digest") is not None}
    return Texts(found, first["texts"], first["lowest"], first["unrelated"], similarities)


class Sources(NamedTuple):
    """The messages that a text comes from.

    Attributes:
        names: Each as `message:<id>`, in their order.
        sent_at: When the last of them was sent. For a text about no message, when the message before it was sent. None
            if that message is deleted or does not exist.

    """

    names: Sequence[str]
    sent_at: datetime | None


async def list_sources(connection: Connection, ranges: Sequence[Sequence[Any]], most: int) -> list[Sources]:
    """Return the messages of each range (chat's key, line's id, first and last seq).

    Of a range of more than `most` messages, only the newest are named.
    """
    found = await list_newest_of_ranges(connection, ranges, most)
    return [Sources([f"message:{one}" for one in of.message_ids], of.last_sent_at) for of in found]
