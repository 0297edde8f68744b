"""The tables of bindings and of recorded tool calls."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.kit.owners import CHAT_WIDE

Time = TIMESTAMP(timezone=True)


class Binding(Table):
    """A call of a tool that wrote something, and the reply that the written content belongs to.

    `binding_id` is also the id of the row that the layer wrote. Each layer with such a tool lists this class in
    `Layer.models`.

    While a binding `is_open`, its reply is not stored yet. In this state `message_id` is the message that the call
    named, if any. `next_swipe` is whether the call waits for the next alternative text of a message. `message_id` is
    then never null: if the call named no message, it is the newest one. `at_seq` is the seq of the newest message when
    the tool was called (hidden ones and thoughts do not count). With `next_swipe`, it is the seq of `message_id` if
    that seq is higher (`rule.choose_placement`).

    When the reply has been stored, `message_id` is its id, `at_seq` its seq, and `text_hash` the hash of its text.
    `matches` is whether the reply has this text now and is neither deleted nor hidden by a person. In a chat without
    messages, a call that names no reply belongs to no reply: its row has no hash, `matches` is true and `at_seq` is 0.

    `identity` is the hash of the arguments; `asked_id` and `asked_hash` are the id and the text hash of the newest
    message when the tool was called. They identify a retry. `awaits_user` is whether the reply may answer a message of
    the user that is not appended yet. If so, the user's next message does not drop the call.
    """

    __tablename__ = "bindings"
    __table_args__ = (
        CheckConstraint("NOT (is_open AND (matches OR text_hash IS NOT NULL))", name="is_open"),
        CheckConstraint("text_hash IS NULL OR message_id IS NOT NULL", name="reply"),
        CheckConstraint("at_seq >= 0", name="at_seq"),
        Index("ix_bindings_seq", "chat_key", "line_id", "at_seq"),
        Index("ix_bindings_open", "chat_key", "line_id", postgresql_where=text("is_open")),
        {"info": {"begins": "at_seq", "exported": "matches"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    binding_id: Mapped[UUID] = mapped_column(primary_key=True)
    layer: Mapped[str]
    tool: Mapped[str]
    character: Mapped[str]
    identity: Mapped[bytes] = mapped_column(LargeBinary)
    asked_id: Mapped[str | None]
    asked_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    message_id: Mapped[str | None]
    next_swipe: Mapped[bool] = mapped_column(server_default="false")
    awaits_user: Mapped[bool] = mapped_column(server_default="false")
    at_seq: Mapped[int]
    text_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    is_open: Mapped[bool] = mapped_column(server_default="false")
    matches: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(Time)


class ToolCallRecord(Table):
    """A call of a tool, as it was made on the line `made_on`.

    `owner_key` is the chat's key and `line_id` is CHAT_WIDE: the record is not copied when a line is copied, and it is
    erased with the chat. `arguments` is the JSON that was sent, or null if it was too long or not JSON. `answer` is the
    beginning of the answer to the model. If the call wrote something, `call_id` is the id of its binding. `at_seq` is
    the line's newest seq when the tool was called. `only_chat` is whether the caller saw only what is known in the chat
    itself.
    """

    __tablename__ = "tool_calls"
    __table_args__ = (
        CheckConstraint(f"line_id = '{CHAT_WIDE}'", name="line"),
        CheckConstraint("outcome IN ('wrote', 'read', 'refused')", name="outcome"),
        {"info": {"has_lines": False}},
    )

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    call_id: Mapped[UUID] = mapped_column(primary_key=True)
    made_on: Mapped[UUID]
    tool: Mapped[str]
    character: Mapped[str]
    arguments: Mapped[str | None] = mapped_column(Text)
    outcome: Mapped[str]
    answer: Mapped[str] = mapped_column(Text)
    at_seq: Mapped[int]
    only_chat: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(Time)
