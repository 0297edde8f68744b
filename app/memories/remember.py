"""Stores sentences that were learnt from messages as memories, each of them once."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.knowledge.important import LEAST_IMPORTANCE
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, Source, learn_by_messages, lock_scope, teach_by_messages
from app.layers.derived import Origin
from app.memories.dedupe import Known
from app.memories.known_memories import Forgotten, Held, Taught, read_known
from app.memories.memory import DEFAULT_IMPORTANCE, Category
from app.memories.queries import KIND
from app.memories.settings import MemorySettings

NAME = "memories"

Outcome = Literal["new", "duplicate", "supersedes", "forgotten", "untaught"]


class LearntMemory(NamedTuple):
    """A sentence that was learnt.

    Attributes:
        content: The sentence.
        origin: Who wrote it.
        category: None if it has none of the categories.
        importance: From 0 to 1.
        tags: Short words.
        sources: The messages that it was learnt from, at least one.
        after: The sentence's time minus the argument `at` of `remember`. It differs between sentences, so that they
            have an order.

    """

    content: str
    sources: Sequence[Source]
    origin: Origin = "model"
    category: Category | None = None
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    after: timedelta = timedelta()


class Remembered(NamedTuple):
    """The outcome for a sentence that was learnt.

    Attributes:
        outcome: `new`: it became a new memory. `duplicate`: a memory has or had this text, and gets the sources of the
            sentence, too. `supersedes`: it became the text of a known memory. If the memory's present text has a later
            `learnt_at`, the sentence became a former text of the memory instead. `forgotten`: nothing was stored,
            because a person has replaced or forgotten this sentence, or the text that it would supersede. (A replaced
            sentence that the scope still stores is a `duplicate`. A text that was forgotten only in a wider scope can
            be superseded.) `untaught`: nothing was stored, because the line no longer has any of the sources.
        memory_id: The memory; None for `untaught`, and for `forgotten` if only the hash of its text is known.

    """

    outcome: Outcome
    memory_id: UUID | None


async def remember(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: Sequence[LearntMemory],
    *,
    character: str | None,
    settings: MemorySettings,
    at: datetime,
    aged_at: datetime,
    now: datetime,
    names: Collection[str] = (),
) -> list[Remembered]:
    """Store sentences that were learnt from messages of `head`'s line, which is the chat's current one and locked.

    Each sentence is compared with the memories of the scope that are live on the line and not in the archive, with the
    sentences before it, with the texts that persons replaced or put into the archive, and with the memories that were
    forgotten in any scope that the line sees. A memory that has faded into the archive is dated again, and so brought
    back, if a sentence has its text. The sentences after that one are compared with this memory, too. A sentence that
    is only similar to a memory which is still faded becomes a new memory. The caller defers `LayerChanged`, which also
    writes the head.

    Args:
        db_session: Open unit of work.
        head: The line's head.
        scope: The scope of the memories.
        learnt: The sentences.
        character: The character whose scope is one of those that the line sees; None if the chat does not have exactly
            one character.
        settings: The chat's settings of memories.
        at: When the sentences were learnt; the field `after` of each is added to it. A sentence does not replace a text
            that was learnt later.
        aged_at: The time at which the ages of memories are measured: when the newest of the messages that were read was
            sent, but never after `now`. It decides which memories have faded into the archive.
        now: The service's time. A message with a later time counts as sent at `now`.
        names: The names of people that the sentences may contain, such as those of the chat's characters. Sentences
            about different people are different memories. In scripts without small letters, only these names are
            recognised.

    """
    await lock_scope(db_session, scope)
    contents = [one.content for one in learnt]
    known = await read_known(db_session, head, scope, character, settings, aged_at, contents, names)
    found = []
    for one, statement_id in zip(learnt, _make_ids(learnt), strict=True):
        verdict = known.compare(one.content, settings.dedupe_threshold)
        while isinstance(verdict, Taught):
            taught = await teach_by_messages(
                db_session, head, scope, verdict.statement_id, one.sources, layer=NAME, now=now
            )
            if taught is not None:
                break
            known.drop(verdict)  # another chat has just taken it back
            verdict = known.compare(one.content, settings.dedupe_threshold)
        if isinstance(verdict, Taught):
            known.bring_back(verdict)
            found.append(Remembered("duplicate", verdict.memory_id))
        elif isinstance(verdict, Forgotten):
            found.append(Remembered("forgotten", verdict.memory_id))
        else:
            found.append(
                await _store(db_session, head, scope, one, statement_id, verdict, known.held, at + one.after, now)
            )
    return found


def _make_ids(learnt: Sequence[LearntMemory]) -> Sequence[UUID]:
    """Return the id of each sentence's statement. Important sentences have the greatest ids.

    So all sentences that were learnt together reach the block `facts` together (`write_important` in `liveness.py`).
    """
    by_importance = sorted(range(len(learnt)), key=lambda at: learnt[at].importance >= LEAST_IMPORTANCE)
    ids = {at: uuid7() for at in by_importance}
    return [ids[at] for at in range(len(learnt))]


async def _store(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: LearntMemory,
    statement_id: UUID,
    former: Held | None,
    held: dict[UUID, Held],
    at: datetime,
    now: datetime,
) -> Remembered:
    """Insert a new memory, or a new text of the memory `former`, as the statement `statement_id`.

    A new text keeps the pin, the choice about the archive, and the category, importance and tags that a person set on
    `former`. If the present text of `former` was learnt after `at`, it stays the present text.
    """
    memory_id = former.memory_id if former else statement_id
    choices: Mapping[str, Any] = former.choices if former else {}
    more = {"category": learnt.category, "importance": learnt.importance, "tags": list(learnt.tags), **choices}
    is_taught = await learn_by_messages(
        db_session,
        head,
        scope,
        Said(KIND, str(memory_id), learnt.content, 0, more=more),
        learnt.sources,
        statement_id=statement_id,
        layer=NAME,
        origin=learnt.origin,
        at=at,
        now=now,
        bounded=False,
    )
    if not is_taught:
        return Remembered("untaught", None)
    if former is None or former.learnt_at <= at:
        held.pop(memory_id, None)  # so that the newest is the last one
        held[memory_id] = Held(memory_id, statement_id, Known(memory_id, learnt.content), at, choices)
    return Remembered("supersedes" if former else "new", memory_id)
