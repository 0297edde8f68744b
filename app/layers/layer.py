"""The descriptor of a memory layer: everything that the service knows about it.

`docs/layers.md` explains it with an example. A layer builds one `Layer` in its `layer.py`, `app/registry.py` lists it,
and the rest of the service reads the registry.

The history is the messages that a context contains word for word. It begins at the *anchor*, and a *cut* moves the
anchor to an *edge*, a seq at which the history may begin. `app/history/cut.py` lists the kinds of cuts, such as *full*
and *forced* ones. A layer *covers* messages if its memories contain what the messages say.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy import Table as CoreTable

from app.bindings.events import BindingsChanged
from app.chats.coverage import Coverage
from app.chats.events import (
    AnchorMoved,
    CharacterRenamed,
    ChatForked,
    CurrentLineReplaced,
    LineEvent,
    LineTruncated,
    MessagesAppended,
    MessagesChanged,
    MessagesMoved,
    SessionBroken,
    SettingsChanged,
)
from app.chats.head import Head
from app.chats.settings import ChatSettings, LayerSettings
from app.kit.db import DbSession, Table
from app.kit.owners import OwnerErased
from app.layers.contribution import Contributed, SegmentSpec, View
from app.layers.job import Job
from app.layers.stored_forms import StoredWork
from app.layers.tool import Tool
from app.lines.line_copy import Line
from app.summarising.prompts import Prompt

Event = TypeVar("Event", bound=LineEvent, contravariant=True)

Handler = Callable[[DbSession, Event], Awaitable[None]]
"""Handles an event in the transaction that caused it. It may change the event's head, which is written afterwards."""


async def _ignore(_db_session: DbSession, _event: LineEvent) -> None:
    """Ignore the event."""


async def _covers_nothing(_db_session: DbSession, _head: Head, _from_seq: int, _until_seq: int) -> int | None:
    """Return None, so that no cut waits for the layer."""
    return None


async def _end_no_session(_db_session: DbSession, _event: MessagesAppended) -> Sequence[SessionBroken]:
    """Return nothing, because the layer ends no sessions."""
    return ()


async def _grant(_db_session: DbSession, _head: Head, _until_seq: int, *, now: datetime) -> bool:  # noqa: ARG001
    """Return True, because nothing is missing."""
    return True


async def _no_coverage(
    _db_session: DbSession, _chat_key: UUID, _line_id: UUID, _first_seq: int, _last_seq: int
) -> Sequence[Coverage]:
    return ()


async def _describe_nothing(_db_session: DbSession, _line: Line, _ids: Sequence[UUID]) -> Mapping[UUID, str]:
    return {}


async def _no_edges(_db_session: DbSession, _head: Head, _from_seq: int) -> Sequence[int]:
    return ()


async def _seeks_nothing(_db_session: DbSession, _head: Head, _until_seq: int, *, now: datetime) -> bool:  # noqa: ARG001
    """Return False, because the layer finds its edges at once."""
    return False


async def _erase_nothing_else(_db_session: DbSession, _event: OwnerErased, *, now: datetime) -> None:
    """Do nothing, because the layer stores data about an owner only in rows under the owner's key."""


async def _ignore_line(_db_session: DbSession, _event: CurrentLineReplaced, *, now: datetime) -> None:
    """Do nothing, because the layer schedules no work for a new current line, and raises no revision itself."""


async def _copy_nothing_else(_db_session: DbSession, _event: ChatForked, *, now: datetime) -> None:
    """Do nothing, because the rows of the layer are copied with the line."""


async def _ignore_texts(_db_session: DbSession, _head: Head, *, now: datetime) -> None:
    """Do nothing, because the layer derives nothing from the texts of other layers."""


async def _keep_cache(_db_session: DbSession, _head: Head) -> None:
    """Do nothing, because the layer stores no data on the line's row."""


def _share_nothing(settings: ChatSettings) -> bool:  # noqa: ARG001
    return False


def _contribute_nothing(_view: View) -> Contributed:
    return Contributed()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """A kind of memory. The defaults of all optional attributes do nothing, except that of `export_state`.

    Layers are compared by identity, so they can be keys of a dict.

    Attributes:
        name: Its name in due work, usage, the chat's cursors and the context cache.
        settings: Its section of a chat's settings; None if it has none and is always on.
        also_known_as: Further names of its content in the API. The revision of a change is recorded under each of them.
        cursor: The type of what it stores in the chat's cursors; an import of a vault checks it. None if it stores
            nothing there.
        cached: The type of what its `refresh_cache` stores on the line's row; an import of a vault checks it. None if
            it stores nothing there.
        planned: The type of its work items that are the only record that messages are still to be read. Their payload
            has a `last_seq`. A vault contains these items, and an import checks them with this type. None if all work
            of the layer follows from its rows.
        models: Its tables; rows with a line in their key are copied and erased with the line.
        jobs: The jobs that run its due work; the job with the longest matching prefix runs an item.
        routers: Its HTTP routes; their tags appear in `/docs` in the order of the registry.
        prompts: Its prompts; a deployment can replace each of them from its prompts folder.
        tools: The tools that the model can call.
        describe_writes: (db_session, line, binding_ids) → what calls of the tools wrote, in words without a full stop,
            for the list of calls; ids that are left out get a general description.
        on_append: Messages were appended: schedule work that becomes due.
        on_change: Messages changed: mark rows derived from them as stale and schedule them.
        on_truncate: The end of the line was removed: drop rows derived from the removed messages, and reopen a range of
            which only a part was removed.
        on_bindings: Calls of the layer's tools, or the replies that they are bound to, changed: replies arrived, calls
            were dropped, a reply got another text, was deleted or was hidden by a person, or such a change was undone.
            Show, hide or delete what the calls wrote.
        on_move: Messages moved to a new line: copy what belongs to them and is not made again, such as people's texts.
        on_rename: A character has a new name: store it wherever the layer stores the name, except in the column
            `filters` of its tables, in which the service itself renames the character.
        on_settings_changed: Settings changed: schedule rows that became stale while the layer was disabled.
        on_cut: The anchor moved.
        on_line_replaced: (db_session, event, now=) → another line of the chat became the current one, or a vault (an
            export of a whole chat, `docs/vault.md`) was imported as the chat: schedule the work of the current line. If
            contexts of other chats contain data of the layer, raise the revision of the user or the tenant that these
            chats share with this one.
        on_texts_changed: (db_session, head, now=) → texts of other layers may have changed (`documents`): schedule what
            is derived from them.
        on_fork: (db_session, event, now=) → the chat was forked, and the rows of its line are copied: copy or schedule
            what belongs to the chat and to none of its lines. A `LineTruncated` follows if the fork ends at a message.
        on_session: A session ended, by hand or in the append that is being handled: schedule work that is due then.
            Whether the history is cut is decided afterwards.
        end_sessions: (db_session, event) → the sessions that end before one of the appended messages, in order. Called
            after the `on_append` of all layers.
        covered_through: (db_session, head, from_seq, until_seq) → the last seq up to which the layer covers everything
            from `from_seq` on; None if no cut has to wait for the layer. `until_seq` is the last seq before the cut's
            target. Memory of the layer that ends exactly at `until_seq` counts. The layer may leave out memory that
            ends later; `summary` does. The cut is possible if the result is `until_seq` or more.
        request_coverage: (db_session, head, until_seq, now=) → schedule the missing coverage up to `until_seq`
            (inclusive), for which a cut waits; return False if it cannot be made.
        list_coverage: (db_session, chat_key, line_id, first_seq, last_seq) → the coverage of messages of the range.
        edges: The name of its edges, one of the choices of the setting `history.edges`; None if it has none.
        adds_edges_late: Whether edges can appear when one of the layer's jobs ends, not only with new messages. If so,
            a full cut that finds no edge waits for one.
        sets_memo_id: Whether the `memo_id` of a message is the id of the layer's row that covers it.
        list_edges: (db_session, head, from_seq) → the seqs at which a cut may begin the history; called only for chats
            that use this layer's edges, while the layer is on.
        seeks_edges: (db_session, head, until_seq, now=) → whether the layer still searches for edges up to `until_seq`
            (inclusive). A forced cut then waits; the layer schedules the search and limits the wait. Called only for
            chats that use this layer's edges.
        export_state: (db_session, line, only_chat=) → the layer's state on a line, as JSON. With `only_chat`, it leaves
            out what belongs to scopes wider than the chat. If the attribute is None, the rows of its tables are
            exported.
        documents: A query on the line's row `c` for the layer's valid texts, which a search finds
            (`app/layers/documents.py`).
        document_kinds: The kinds of these texts: the part of their sources before the colon.
        scope_documents: If `documents` also finds what is known in the scopes above the chat (`OWNERS_OF_CHAT`), the
            query of these texts for one such scope (`app/layers/documents.py`). A search over many chats of a user
            reads each scope once with it, and not once for each chat.
        shared_documents: A query on the line's row `c` for valid texts of the user's other chats that this chat sees,
            too (`SharedDocument` in `app/layers/documents.py`). A search of the chat finds them, unless the caller sees
            only the chat itself. A search over the user's chats finds each text in its own chat.
        shares_texts: (settings) → whether a chat with these settings may see such texts. If not, the statements of its
            searches leave the query out, because PostgreSQL would need time to prepare it.
        documents_change_with: The names of the changes of a line (`app/chats/revision.py`) that may change the texts of
            the current line. Set it only if these texts depend only on the line, the character, what is known of the
            user and the tenant, and the time. The time may change them only slowly: recall remembers the texts in the
            process until the line has such a change or the revision of its user or tenant rises, for at most one hour.
        erase_owner: (db_session, event, now=) → a chat or a user was erased: delete or correct data about it that is
            not in rows under its key; the rows under its key are already deleted.
        refresh_cache: (db_session, head) → update the layer's data on the line's row.
        segments: The segments it contributes to.
        context_query: A scalar subquery on the line's row `c`, included in the SQL statement of a context, for data
            that cannot be stored on the row; its value is `View.queried`. The statement also has the row `b`, whose
            `seq` is `View.before_seq`, or NULL.
        current_query: A faster query that replaces `context_query` in contexts of the current line without the option
            `before`; None if there is none. Its value has to lead to the same contribution.
        own_query: The query that replaces `context_query` for a caller who sees only the chat itself; needed only if
            `context_query` selects wider scopes without `OWNERS_OF_CHAT` (`app/knowledge/liveness.py`).
        queried_if: An SQL condition on `c`, cheaper than the query, that is true if the query for contexts of the
            current line (`current_query`, or `context_query` if that is None) may find something. If it is not true,
            these contexts skip the query, and `View.queried` is None.
        changes_with: The names of the changes of a line (`app/chats/revision.py`) that may change what the query for
            contexts of the current line finds. Set it only together with `queried_if`, and only if the result depends
            only on the line, its user and its tenant. The process then remembers the result until the line has such a
            change or the revision of its user or tenant rises.
        contribute: (view) → the layer's contribution to a context. Pure.

    """

    name: str
    settings: type[LayerSettings] | None
    also_known_as: tuple[str, ...] = ()
    cursor: Any = None
    cached: Any = None
    planned: type[StoredWork] | None = None
    models: tuple[type[Table], ...] = ()
    jobs: tuple[Job[Any, Any], ...] = ()
    routers: tuple[APIRouter, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    tools: tuple[Tool, ...] = ()
    describe_writes: Callable[[DbSession, Line, Sequence[UUID]], Awaitable[Mapping[UUID, str]]] = _describe_nothing
    on_append: Handler[MessagesAppended] = _ignore
    on_change: Handler[MessagesChanged] = _ignore
    on_truncate: Handler[LineTruncated] = _ignore
    on_bindings: Handler[BindingsChanged] = _ignore
    on_move: Handler[MessagesMoved] = _ignore
    on_rename: Handler[CharacterRenamed] = _ignore
    on_settings_changed: Handler[SettingsChanged] = _ignore
    on_cut: Handler[AnchorMoved] = _ignore
    on_line_replaced: Callable[..., Awaitable[None]] = _ignore_line
    on_texts_changed: Callable[..., Awaitable[None]] = _ignore_texts
    on_fork: Callable[..., Awaitable[None]] = _copy_nothing_else
    on_session: Handler[SessionBroken] = _ignore
    end_sessions: Callable[[DbSession, MessagesAppended], Awaitable[Sequence[SessionBroken]]] = _end_no_session
    covered_through: Callable[[DbSession, Head, int, int], Awaitable[int | None]] = _covers_nothing
    request_coverage: Callable[..., Awaitable[bool]] = _grant
    list_coverage: Callable[[DbSession, UUID, UUID, int, int], Awaitable[Sequence[Coverage]]] = _no_coverage
    edges: str | None = None
    adds_edges_late: bool = False
    sets_memo_id: bool = False
    list_edges: Callable[[DbSession, Head, int], Awaitable[Sequence[int]]] = _no_edges
    seeks_edges: Callable[..., Awaitable[bool]] = _seeks_nothing
    refresh_cache: Callable[[DbSession, Head], Awaitable[None]] = _keep_cache
    export_state: Callable[..., Awaitable[Any]] | None = None
    documents: str | None = None
    document_kinds: tuple[str, ...] = ()
    scope_documents: str | None = None
    shared_documents: str | None = None
    shares_texts: Callable[[ChatSettings], bool] = _share_nothing
    documents_change_with: tuple[str, ...] = ()
    erase_owner: Callable[..., Awaitable[None]] = _erase_nothing_else
    segments: tuple[SegmentSpec, ...] = ()
    context_query: str | None = None
    current_query: str | None = None
    own_query: str | None = None
    queried_if: str | None = None
    changes_with: tuple[str, ...] = ()
    contribute: Callable[[View], Contributed] = _contribute_nothing

    @property
    def tables(self) -> list[CoreTable]:
        """The tables of its models."""
        return [cast("CoreTable", model.__table__) for model in self.models]

    def is_enabled(self, settings: ChatSettings) -> bool:
        """Return whether these settings switch the layer on."""
        return self.settings is None or self.settings.of(settings).enabled

    def job_for(self, key: str) -> Job[Any, Any]:
        """Return the job that runs the work item `key`. Raises LookupError."""
        fitting = [job for job in self.jobs if key.startswith(job.prefix)]
        if not fitting:
            raise LookupError(f"{self.name} has no job for {key!r}")
        return max(fitting, key=lambda job: len(job.prefix))


def find_layer(layers: Sequence[Layer], name: str) -> Layer:
    """Return the layer of that name. Raises LookupError."""
    found = next((layer for layer in layers if layer.name == name), None)
    if found is None:
        raise LookupError(f"there is no layer {name!r}")
    return found


def list_prompts(layers: Sequence[Layer]) -> tuple[Prompt, ...]:
    """Return the prompts of all layers."""
    return tuple(prompt for layer in layers for prompt in layer.prompts)
