"""Tables of chats.

The primary key of each row of a line begins with the chat's key and the line's id, so a line is copied by copying the
rows with this beginning.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.chats.known_names import HAS_FORMER_NAMES
from app.kit.db import Table
from app.kit.scopes import NOW_MS

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)
CURRENT = "current"

_LINE_BEGINS = f"jsonb_build_object('line', {NOW_MS})"

OF_CHAT = frozenset({"tenant", "chat_id", "user_id", "user_key", "metadata", "created_at"})
"""The columns of `chats` that belong to the chat, not to the line."""


class ChatLine(Table):
    """A line of a chat: the row that a context reads and that every write to the line locks first.

    Exactly one line of a chat is current. A checkpoint is a frozen line. An abandoned line can be read, and can become
    current again. The groups of columns:

    - The line's identity: `line_status`, `checkpoint` (the name of a frozen line), `parent_line_id` (the line that this
      one was copied from), `line_created_at`. `replaceable` is true for a line that a re-import made, and for the first
      line of a chat that was created by an append, a PUT, or an import in any format but `vault`. When a switch returns
      to a line, `replaceable` becomes false. `replaced_at` is when a re-import replaced a replaceable line. Later
      re-imports keep only the newest of these lines (`kept_replaced_lines`).
    - The chat (`OF_CHAT`): the same on all lines. Only `queries.update_chat` changes them, on all lines at once. A
      restore, a switch and a re-import do not change them; a fork copies `metadata` and the user.
    - The line's settings: characters, the user's name, personas, settings, time zone, language. A restore includes
      them, because otherwise the context would not be the same byte for byte.
    - The head: the columns that an append changes. None of them is in an index, so that the updates are HOT updates.
      `memo_count` is the number of memos in the memo book, `memo_number` the highest number of a memo so far.
    - The revision (`revision.py`): `revision` rises with every committed change. `base_revision` is the revision of the
      last change that did more than append messages. `changed` has the revision of the last change of each layer and of
      the messages, the settings and the work, by name. A new line starts with new numbers; they are never copied.
    - A cache: `context_cache` has the texts that the layers put into a context, such as the memo window, by the layer's
      name. It is written only when its content changes, so most appends do not rewrite the widest column. A context
      reads the layers' tables only where this cache is not enough, by `Layer.context_query`.
    """

    __tablename__ = "chats"
    __table_args__ = (
        CheckConstraint("line_status IN ('current', 'abandoned', 'checkpoint')", name="line_status"),
        CheckConstraint("anchor_seq >= 1 AND anchor_seq <= head_seq + 1", name="anchor"),
        CheckConstraint("head_seq >= 0 AND history_messages >= 0", name="head"),
        CheckConstraint("(line_status = 'checkpoint') = (checkpoint IS NOT NULL)", name="checkpoint"),
        Index("uq_chats_current", "chat_key", unique=True, postgresql_where=text("line_status = 'current'")),
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
            postgresql_where=text("line_status = 'current'"),
        ),
        Index("ix_chats_user", "user_key", postgresql_where=text("line_status = 'current'")),
        Index(
            "ix_chats_renamed",
            "user_key",
            postgresql_where=text(f"line_status = 'current' AND {HAS_FORMER_NAMES.format('')}"),
        ),
        {"postgresql_with": {"fillfactor": 70}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    line_status: Mapped[str] = mapped_column(server_default=CURRENT)
    checkpoint: Mapped[str | None]
    parent_line_id: Mapped[UUID | None]
    line_created_at: Mapped[datetime] = mapped_column(Time)
    replaceable: Mapped[bool] = mapped_column(server_default="false", info={"copied_as": "false"})
    replaced_at: Mapped[datetime | None] = mapped_column(Time, info={"copied_as": "NULL"})

    tenant: Mapped[str]
    chat_id: Mapped[str]
    user_id: Mapped[str | None]
    user_key: Mapped[UUID | None]
    chat_metadata: Mapped[dict[str, Any]] = mapped_column("metadata", Json, server_default="{}")
    created_at: Mapped[datetime] = mapped_column(Time)

    characters: Mapped[list[dict[str, Any]]] = mapped_column(Json, server_default="[]")
    user_name: Mapped[str | None]
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
    """A message of the conversation. A delete keeps the row as a tombstone.

    `content` is the text of the selected swipe, and `selected_swipe` its index among the alternatives, from 0.
    `visibility_pinned` is true if a person un-hid the message, no matter who hid it: scenes do not hide it from then
    on. `identity` is the hash of the message as first appended, by which a retry is recognised. `digest` is the hash of
    its present text and speaker, from which the hashes of its batch or fold are computed.
    """

    __tablename__ = "messages"
    __table_args__ = (
        CheckConstraint("role IN ('user', 'assistant', 'system', 'tool', 'narrator')", name="role"),
        CheckConstraint("kind IS NULL OR kind = 'thought'", name="kind"),
        CheckConstraint("hidden_by IS NULL OR hidden_by IN ('user', 'scenes')", name="hidden_by"),
        CheckConstraint("importance IS NULL OR (importance >= 0 AND importance <= 1)", name="importance"),
        CheckConstraint("seq >= 1", name="seq"),
        CheckConstraint("selected_swipe >= 0", name="selected_swipe"),
        # The condition is true of every row. Without the condition, PostgreSQL might use this index to read a range of
        # seqs of a line that has no statistics yet. With the condition, PostgreSQL uses the index only for queries with
        # a condition on `message_id`, because only these imply `IS NOT NULL`.
        Index(
            "uq_messages_id",
            "chat_key",
            "message_id",
            "line_id",
            unique=True,
            postgresql_where=text("message_id IS NOT NULL"),
        ),
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
    visibility_pinned: Mapped[bool] = mapped_column(server_default="false")
    selected_swipe: Mapped[int] = mapped_column(server_default="0")
    edited_at: Mapped[datetime | None] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)

    @property
    def deleted(self) -> bool:
        """Whether the row is a tombstone."""
        return self.deleted_at is not None


class Swipe(Table):
    """An unselected alternative text of a message. The selected one is the `content` of the message.

    So a query on messages never returns a text that is not selected.
    """

    __tablename__ = "swipes"
    __table_args__ = (CheckConstraint("swipe_index >= 0", name="swipe_index"), {"info": {"begins": "seq"}})

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    swipe_index: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[str] = mapped_column(Text)


class SourceLine(Table):
    """A line of text of an imported file: its fields that no other table stores, as JSON, for exports.

    `number` is 0 for the line with the message at `seq`. The lines after it that contain no message of the conversation
    have the numbers from 1 on. The row with seq 0 and number 0 is the header of the file. The JSON keeps the order of
    the fields.
    """

    __tablename__ = "source_lines"
    __table_args__ = (CheckConstraint("seq >= 0 AND number >= 0", name="place"), {"info": {"begins": "seq"}})

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(Text)


class Revision(Table):
    """The text and the speaker of a message before an edit; `swipe` is the index of the edited alternative."""

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
