"""The handling of each event, step by step.

Other packages, such as `messages` and the memory layers, defer events (most are in `app/chats/events.py`). The
*follower* of an event is the function that handles it. It runs in the transaction that deferred the event, so memory
and conversation are always consistent.

A *line* is one course of a chat. Its *head* is its row in `chats`, which followers change in memory and then write. The
*seq* of a message is its number on the line. The history that is sent word for word begins at the *anchor*, a seq; a
*cut* moves the anchor. A *binding* connects what a tool wrote with the reply that called the tool.
"""

from collections.abc import Callable, Sequence
from typing import Any

from app.bindings import service as bindings
from app.bindings.events import BindingsChanged
from app.chats.events import (
    AnchorMoved,
    CharacterRenamed,
    ChatEdited,
    ChatForked,
    CurrentLineReplaced,
    LayerChanged,
    LineEvent,
    LineTruncated,
    MessagesAppended,
    MessagesChanged,
    MessagesMoved,
    SessionBroken,
    SettingsChanged,
    TextsAdded,
)
from app.chats.head import Head
from app.chats.heads import lock_line, update_head
from app.chats.revision import MESSAGES, SETTINGS, record
from app.history.anchor import (
    cut_after_append,
    cut_at_break,
    cut_if_settled,
    forget_break,
    recheck_wait,
    settle_anchor,
)
from app.history.cut import Cut, Skip
from app.kit.clock import Clock
from app.kit.db import Database, DbSession, Follower, after_commit
from app.kit.gate.admission import DEFAULT_LIMITS, WaitLimits
from app.kit.idle_connections import IdleConnections
from app.kit.owners import OwnerErased
from app.kit.work_queue import WorkScheduled
from app.knowledge import service as knowledge
from app.layers.derived import rename_in_filters
from app.layers.layer import Layer
from app.messages.reads import count_sent


def open_database(
    url: str,
    layers: Sequence[Layer],
    *,
    clock: Clock,
    settle_s: float,
    notify: Callable[[], None],
    pool_size: int = 20,
    limits: WaitLimits = DEFAULT_LIMITS,
    statement_s: float = 30.0,
    with_vectors: bool = False,
    connections: IdleConnections | None = None,
) -> Database:
    """Return the database, with the followers of all events.

    Args:
        url: `postgresql+asyncpg://…`.
        layers: The memory layers.
        clock: The service's clock.
        settle_s: How long new work waits for further edits, in seconds.
        notify: Wakes the workers to poll for due work; must not block.
        pool_size: The maximum number of connections that this process opens.
        limits: The maximum numbers of requests that wait, per chat and per tenant.
        statement_s: How long a statement may take, in seconds.
        with_vectors: Whether a model turns texts into vectors.
        connections: Connections that are shared with other `Database` objects of the process; by default, new ones.

    """
    followers = Pipeline(layers, clock=clock, notify=notify).followers()
    return Database(
        url,
        pool_size=pool_size,
        limits=limits,
        statement_s=statement_s,
        followers=followers,
        settle_s=settle_s,
        with_vectors=with_vectors,
        connections=connections,
    )


class Pipeline:
    """The followers of all events; see `open_database`."""

    def __init__(self, layers: Sequence[Layer], *, clock: Clock, notify: Callable[[], None]) -> None:
        self._layers = layers
        self._clock = clock
        self._notify = notify

    def followers(self) -> dict[type[Any], Follower]:
        """Return the follower of each type of event."""
        return {
            MessagesAppended: self._on_append,
            TextsAdded: self._on_texts,
            BindingsChanged: self._on_bindings,
            MessagesChanged: self._on_change,
            LineTruncated: self._on_truncate,
            MessagesMoved: self._on_move,
            SessionBroken: self._on_session,
            CharacterRenamed: self._on_rename,
            ChatEdited: self._on_chat_edited,
            LayerChanged: self._on_layer_changed,
            ChatForked: self._on_fork,
            CurrentLineReplaced: self._on_line_replaced,
            OwnerErased: self._on_owner_erased,
            WorkScheduled: self._on_work_scheduled,
        }

    async def _on_append(self, db_session: DbSession, event: MessagesAppended) -> None:
        """Bind tool calls to replies, let the layers schedule work, end sessions, decide on a cut, write the head."""
        record(db_session, event.head.line, MESSAGES, in_context=False)
        if event.answers_calls:
            await self._count_sent(db_session, event.head)
        changed = await self._pass_on(db_session, await bindings.on_append(db_session, event))
        for layer in self._layers:
            await layer.on_append(db_session, event)
        broken = [one for layer in self._layers for one in await layer.end_sessions(db_session, event)]
        for one in broken:
            await self._pass_session_on(db_session, one)
        session_seq = broken[-1].last_seq + 1 if broken else None
        if cut := await cut_after_append(db_session, event, self._layers, session_seq=session_seq):
            await self._on_cut(db_session, event, cut)
        if cut or changed:
            await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    async def _on_texts(self, db_session: DbSession, event: TextsAdded) -> None:
        """Bind the tool calls that wait for these texts."""
        if changed := await bindings.on_texts(db_session, event):
            await self._on_bindings(db_session, changed)

    async def _on_bindings(self, db_session: DbSession, event: BindingsChanged) -> None:
        """Let the layers show, hide or drop what tools wrote, then refresh the caches and write the head."""
        await self._pass_on(db_session, event)
        await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    async def _pass_on(self, db_session: DbSession, event: BindingsChanged | None) -> bool:
        """Pass changed bindings on to the layers that wrote for the tools; return whether any binding has changed."""
        if event is None:
            return False
        line, names = event.head.line, event.layers
        record(db_session, line, *names, in_context=event.in_context)
        for layer in self._layers:
            if layer.name in names:
                await layer.on_bindings(db_session, event.of(layer.name))
        return True

    async def _on_change(self, db_session: DbSession, event: MessagesChanged) -> None:
        """Let the layers mark stale rows; then correct the anchor, and decide again what a waiting cut waits for."""
        self._record_all(db_session, event.head, MESSAGES)
        if event.alters_history:
            await self._count_sent(db_session, event.head)
        await self._pass_on(db_session, await bindings.on_change(db_session, event))
        await knowledge.on_change(db_session, event)
        for layer in self._layers:
            await layer.on_change(db_session, event)
        if event.alters_history:
            move = await settle_anchor(db_session, event.head, self._layers, by_scenes=event.by_scenes, now=event.now)
            if move:
                await self._on_cut(db_session, event, move)
        await self._finish_change(db_session, event)

    async def _on_truncate(self, db_session: DbSession, event: LineTruncated) -> None:
        """Let the layers drop rows derived from the removed end of the line; then correct the anchor."""
        self._record_all(db_session, event.head, MESSAGES)
        await self._count_sent(db_session, event.head)  # a call may have lost its result
        await bindings.on_truncate(db_session, event)
        await knowledge.on_truncate(db_session, event)
        forget_break(event.head, event.from_seq)
        for layer in self._layers:
            await layer.on_truncate(db_session, event)
        if move := await settle_anchor(db_session, event.head, self._layers, now=event.now):
            await self._on_cut(db_session, event, move)
        await self._finish_change(db_session, event)

    async def _on_move(self, db_session: DbSession, event: MessagesMoved) -> None:
        """Let the layers copy to a new line what belongs to moved messages, except for what will be made again."""
        self._record_all(db_session, event.head, MESSAGES)
        await bindings.on_move(db_session, event)
        await knowledge.on_move(db_session, event)
        for layer in self._layers:
            await layer.on_move(db_session, event)
        await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    async def _on_session(self, db_session: DbSession, event: SessionBroken) -> None:
        """Let the layers react to a session that was ended by hand, cut the history, and write the head."""
        await self._pass_session_on(db_session, event)
        if cut := await cut_at_break(db_session, event.head, event.last_seq + 1, self._layers, now=event.now):
            await self._on_cut(db_session, event, cut)
            await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    async def _pass_session_on(self, db_session: DbSession, event: SessionBroken) -> None:
        for layer in self._layers:
            await layer.on_session(db_session, event)

    async def _on_rename(self, db_session: DbSession, event: CharacterRenamed) -> None:
        """Store the new name wherever the character's name is stored; no hash of a message changes."""
        self._record(db_session, event.head, self._layers, SETTINGS, MESSAGES)
        await bindings.on_rename(db_session, event)
        tables = {table.name: table for layer in self._layers for table in layer.tables}
        await rename_in_filters(db_session, event.head.line, tables.values(), event.former, event.name)
        for layer in self._layers:
            await layer.on_rename(db_session, event)
        await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    async def _on_chat_edited(self, db_session: DbSession, event: ChatEdited) -> None:
        """Let the layers adapt to changed settings. The next append decides again on a waiting cut."""
        head = await lock_line(db_session, event.chat_key, event.line_id)
        if head is None:
            return
        self._record_all(db_session, head, SETTINGS)
        head.cut_waits = False
        changed = SettingsChanged(head=head, now=self._clock(), settle_s=db_session.settle_s)
        for layer in self._layers:
            await layer.on_settings_changed(db_session, changed)
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _on_layer_changed(self, db_session: DbSession, event: LayerChanged) -> None:
        """Decide again on a waiting cut, then refresh the caches with the layer's changes."""
        head, now = event.head, self._clock()
        self._record(db_session, head, [layer for layer in self._layers if layer.name == event.layer])
        if cut := await cut_if_settled(db_session, head, self._layers, now=now):
            await self._on_cut(db_session, LineEvent(head=head, now=now, settle_s=db_session.settle_s), cut)
        await self._refresh(db_session, head, changed=event.layer)
        await update_head(db_session, head)

    async def _on_line_replaced(self, db_session: DbSession, event: CurrentLineReplaced) -> None:
        """Raise revisions of users and tenants whose other chats show data of this chat; let layers schedule work."""
        await knowledge.on_line_replaced(db_session, event)
        for layer in self._layers:
            await layer.on_line_replaced(db_session, event, now=self._clock())

    async def _on_fork(self, db_session: DbSession, event: ChatForked) -> None:
        """Copy to a fork what belongs to the chat and not to its line."""
        await knowledge.on_fork(db_session, event)
        for layer in self._layers:
            await layer.on_fork(db_session, event, now=self._clock())

    async def _on_owner_erased(self, db_session: DbSession, event: OwnerErased) -> None:
        """Let the layers erase data about a chat or a user that is stored under another key."""
        await knowledge.on_owner_erased(db_session, event)
        for layer in self._layers:
            await layer.erase_owner(db_session, event, now=self._clock())

    async def _on_work_scheduled(self, db_session: DbSession, _event: WorkScheduled) -> None:
        """Notify the workers after the commit."""
        after_commit(db_session, self._notify)

    async def _count_sent(self, db_session: DbSession, head: Head) -> None:
        """Count the sent messages: a message with only tool calls is sent once one of its calls has a result."""
        head.history_messages = await count_sent(db_session, *head.line, head.anchor_seq)

    async def _on_cut(self, db_session: DbSession, event: LineEvent, move: Cut | Skip) -> None:
        """Let the layers react to a moved anchor."""
        self._record_all(db_session, event.head, MESSAGES)
        reason = move.reason if isinstance(move, Cut) else None
        moved = AnchorMoved(head=event.head, now=event.now, settle_s=event.settle_s, reason=reason)
        for layer in self._layers:
            await layer.on_cut(db_session, moved)

    async def _finish_change(self, db_session: DbSession, event: LineEvent) -> None:
        """Decide again what a waiting cut waits for, refresh the caches and write the head."""
        await recheck_wait(db_session, event.head, self._layers, now=event.now)
        await self._refresh(db_session, event.head)
        await update_head(db_session, event.head)

    def _record_all(self, db_session: DbSession, head: Head, name: str) -> None:
        """Record a change of the line that can affect every layer. An append without a cut needs no such record."""
        self._record(db_session, head, self._layers, name)

    def _record(self, db_session: DbSession, head: Head, layers: Sequence[Layer], *names: str) -> None:
        record(
            db_session, head.line, *names, *(name for layer in layers for name in (layer.name, *layer.also_known_as))
        )

    async def _refresh(self, db_session: DbSession, head: Head, *, changed: str | None = None) -> None:
        """Let the layers update their caches, and schedule what they derive from the texts of other layers.

        If only one layer has changed, `changed` is its name; its own `on_texts_changed` is not called.
        """
        for layer in self._layers:
            await layer.refresh_cache(db_session, head)
        for layer in self._layers:
            if layer.name != changed:
                await layer.on_texts_changed(db_session, head, now=self._clock())
