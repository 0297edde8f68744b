"""Tables of the log. Everything of a chat lies under (chat_key, line_id): it is copied, erased and moved as one."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.kit.scopes import NOW_MS

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)
CURRENT = "current"

_LINE_BEGINS = f"jsonb_build_object('line', {NOW_MS})"

OF_CHAT = frozenset({"tenant", "chat_id", "user_id", "user_key", "metadata", "created_at"})
"""The columns of `chats` that belong to the chat and not to the line."""


class ChatLine(Table):
    """One line of a chat: the row that a context reads and that every write to the line locks first.

    Exactly one line of a chat is current. A checkpoint is a frozen line, an abandoned one can be read and made current.
    The columns, by their owner:

    - The line's identity: `standing`, `checkpoint` (the name of a frozen line), `parent_line_id` (the line that this
      one was copied from), `line_made_at`.
    - The chat (`OF_CHAT`): the same on all lines, and only `queries.update_chat` changes them, on all lines at once.
      A restore, a switch and a re-import leave them as they are; a fork copies `metadata` and the user.
    - The line's settings: characters, personas, settings, time zone, language. A restore brings them back, because
      otherwise the context after it would not be the same bytes.
    - The head: what an append changes. None of these columns is in an index, so that the update stays in its page.
      `memo_count` is how many memos are in the book, `memo_number` the number that the last one was given.
    - The revision: `revision` rises by one with every committed change, and so does `base_revision` with every change
      that is not only messages after the head; `changed` holds the revision of the last change by name. Only
      `revision.py` decides what is written to them. A line that begins anew has numbers of its own, never copied ones.
    - A cache: `context_cache` holds what the layers put into a context, by the layer's name, such as the window of
      memos. It is written only where that changes, so that an append does not write the widest column and a context
      reads no other table.
    """

    __tablename__ = "chats"
    __table_args__ = (
        CheckConstraint("standing IN ('current', 'abandoned', 'checkpoint')", name="standing"),
        CheckConstraint("anchor_seq >= 1 AND anchor_seq <= head_seq + 1", name="anchor"),
        CheckConstraint("head_seq >= 0 AND history_messages >= 0", name="head"),
        CheckConstraint("(standing = 'checkpoint') = (checkpoint IS NOT NULL)", name="checkpoint"),
        Index("uq_chats_current", "chat_key", unique=True, postgresql_where=text("standing = 'current'")),
        Index(
            "uq_chats_checkpoint",
            "chat_key",
            "checkpoint",
            unique=True,
            postgresql_where=text("checkpoint IS NOT NULL"),
        ),
        Index(
            "ix_chats_tenant",
            "tenant",
            "created_at",
            "chat_key",
            postgresql_where=text("standing = 'current'"),
        ),
        Index("ix_chats_user", "user_key", postgresql_where=text("standing = 'current'")),
        {"postgresql_with": {"fillfactor": 70}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    standing: Mapped[str] = mapped_column(server_default=CURRENT)
    checkpoint: Mapped[str | None]
    parent_line_id: Mapped[UUID | None]
    line_made_at: Mapped[datetime] = mapped_column(Time)

    tenant: Mapped[str]
    chat_id: Mapped[str]
    user_id: Mapped[str | None]
    user_key: Mapped[UUID | None]
    chat_metadata: Mapped[dict[str, Any]] = mapped_column("metadata", Json, server_default="{}")
    created_at: Mapped[datetime] = mapped_column(Time)

    characters: Mapped[list[dict[str, Any]]] = mapped_column(Json, server_default="[]")
    user_persona: Mapped[str | None] = mapped_column(Text)
    system_prompt: Mapped[str | None] = mapped_column(Text)
    settings: Mapped[dict[str, Any]] = mapped_column(Json, server_default="{}")
    time_zone: Mapped[str] = mapped_column(server_default="UTC")
    language: Mapped[str | None]

    head_seq: Mapped[int] = mapped_column(server_default="0")
    anchor_seq: Mapped[int] = mapped_column(server_default="1")
    history_messages: Mapped[int] = mapped_column(server_default="0")
    message_count: Mapped[int] = mapped_column(server_default="0")
    turn_count: Mapped[int] = mapped_column(server_default="0")
    token_count: Mapped[int] = mapped_column(server_default="0")
    memo_count: Mapped[int] = mapped_column(server_default="0")
    memo_number: Mapped[int] = mapped_column(server_default="0")
    awaits_reply: Mapped[bool] = mapped_column(server_default="false")
    cut_waits: Mapped[bool] = mapped_column(server_default="false")
    last_cut: Mapped[dict[str, Any] | None] = mapped_column(Json)
    cursors: Mapped[dict[str, Any]] = mapped_column(Json, server_default="{}")
    last_active_at: Mapped[datetime] = mapped_column(Time)

    revision: Mapped[int] = mapped_column(BigInteger, server_default=text(NOW_MS), info={"copied_as": NOW_MS})
    base_revision: Mapped[int] = mapped_column(BigInteger, server_default=text(NOW_MS), info={"copied_as": NOW_MS})
    changed: Mapped[dict[str, int]] = mapped_column(
        Json, server_default=text(_LINE_BEGINS), info={"copied_as": _LINE_BEGINS}
    )

    context_cache: Mapped[dict[str, Any]] = mapped_column(Json, server_default="{}")


class Message(Table):
    """One entry of the conversation, never physically deleted while its chat lives.

    It says what its selected swipe says; `selected_swipe` is the place of that among its alternatives, from 0.
    `kept_shown` is true of what a person has shown again whoever hid it: scenes leave it alone from then on.
    """

    __tablename__ = "messages"
    __table_args__ = (
        CheckConstraint("role IN ('user', 'assistant', 'system', 'tool', 'narrator')", name="role"),
        CheckConstraint("kind IS NULL OR kind = 'thought'", name="kind"),
        CheckConstraint("hidden_by IS NULL OR hidden_by IN ('user', 'scenes')", name="hidden_by"),
        CheckConstraint("importance IS NULL OR (importance >= 0 AND importance <= 1)", name="importance"),
        CheckConstraint("seq >= 1", name="seq"),
        CheckConstraint("selected_swipe >= 0", name="selected_swipe"),
        # The line last: an index that begins like the key is taken for a seq, too, while statistics know nothing.
        Index("uq_messages_id", "chat_key", "message_id", "line_id", unique=True),
        Index(
            "ix_messages_sent",
            "chat_key",
            "line_id",
            "seq",
            postgresql_where=text("deleted_at IS NULL AND hidden_by IS NULL"),
        ),
        Index("ix_messages_pinned", "chat_key", "line_id", "seq", postgresql_where=text("pinned")),
        {"info": {"begins": "seq"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    message_id: Mapped[str]
    role: Mapped[str]
    name: Mapped[str | None]
    kind: Mapped[str | None]
    content: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    blank: Mapped[bool] = mapped_column(server_default="false")
    importance: Mapped[float | None]
    tool_calls: Mapped[list[dict[str, Any]] | None] = mapped_column(Json)
    tool_call_id: Mapped[str | None]
    message_metadata: Mapped[dict[str, Any] | None] = mapped_column("metadata", Json)
    sent_at: Mapped[datetime] = mapped_column(Time)
    identity: Mapped[bytes] = mapped_column(LargeBinary)
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    excluded: Mapped[bool] = mapped_column(server_default="false")
    pinned: Mapped[bool] = mapped_column(server_default="false")
    hidden_by: Mapped[str | None]
    kept_shown: Mapped[bool] = mapped_column(server_default="false")
    selected_swipe: Mapped[int] = mapped_column(server_default="0")
    edited_at: Mapped[datetime | None] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)

    @property
    def deleted(self) -> bool:
        """Whether only a tombstone is left."""
        return self.deleted_at is not None


class Swipe(Table):
    """An alternative text of a message that is not the selected one: that is the message's own.

    So no reader of messages can come across a text that is not selected.
    """

    __tablename__ = "swipes"
    __table_args__ = (CheckConstraint("place >= 0", name="place"), {"info": {"begins": "seq"}})

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[str] = mapped_column(Text)


class Revision(Table):
    """What a message said, and who said it, before an edit; `swipe` is the alternative that was edited."""

    __tablename__ = "revisions"
    __table_args__ = ({"info": {"begins": "seq"}},)

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    swipe: Mapped[int]
    role: Mapped[str]
    name: Mapped[str | None]
    content: Mapped[str] = mapped_column(Text)
    replaced_at: Mapped[datetime] = mapped_column(Time)
