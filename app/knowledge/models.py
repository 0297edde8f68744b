"""The tables of statements and teachings."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge.liveness import IS_IMPORTANT, IS_LESS_IMPORTANT, IS_PRESENT_IMPORTANT

Time = TIMESTAMP(timezone=True)


class Statement(Table):
    """Something that is known in a scope: a chat, a user with one character, a user, or a tenant.

    `owner_key` and `line_id` identify the scope: the chat's key and CHAT_WIDE, or the key of the user or the tenant and
    NO_LINE. `character` is the name in the scope of a user with one character, otherwise empty. A statement belongs to
    no line, so it is not copied with a line. The rows of `Teaching` decide on which lines a statement is live.

    The `content` of a statement never changes: a new value is a new statement. Of the live statements of a `kind` with
    the same `key`, the newest by `learnt_at` holds. If `content` is null, the key has no value any more. `is_set` is
    true if a person set the statement; it is then live on every line. `edited` is whether a person replaced a value
    that a tool or the service had written. `tokens` is the number of tokens of a fact's line in a prompt; 0 in other
    kinds.

    A statement of the kind `block` is an `operation` on the text of its `key`: the live operations, applied in order,
    make the text. `content` is what it writes, and `pattern` what `search_replace` looks for. `operation` and `pattern`
    are null in other kinds.

    Memories and learnt facts have a `category`, an `importance` and `tags`; these are null in other statements. The
    other columns are for memories. In a memory's statements, `key` is the id of the memory. `pinned` and `archived`
    (null: the memory's strength decides) belong to the memory: in a scope, they are equal in all of its statements that
    have a text. `pinned`, `archived`, `category`, `importance` and `tags` can be changed in place; `chosen` names which
    of `category`, `importance` and `tags` a person set. `forgotten` contains hashes of texts that are not learnt again:
    for each text, a hash of the text as it is, and one of the text in the form in which equal texts are compared
    (`fold` in `known.py`). `forgotten` is set in a statement that forgets a memory, and in a statement with which a
    person replaces former texts.
    """

    __tablename__ = "statements"
    __table_args__ = (
        CheckConstraint(f"line_id IN ('{NO_LINE}', '{CHAT_WIDE}')", name="line"),
        CheckConstraint("kind IN ('fact', 'block', 'memory')", name="kind"),
        CheckConstraint("origin IN ('model', 'extractive', 'tool', 'person')", name="origin"),
        CheckConstraint(f"character = '' OR line_id = '{NO_LINE}'", name="character"),
        CheckConstraint("operation IN ('replace', 'append', 'search_replace')", name="operation"),
        CheckConstraint("(pattern IS NOT NULL) = (operation IS NOT DISTINCT FROM 'search_replace')", name="pattern"),
        Index("ix_statements_key", "owner_key", "line_id", "kind", "character", "key", "learnt_at", "statement_id"),
        Index(
            "ix_statements_ranked",
            "owner_key",
            "line_id",
            "character",
            text("importance DESC"),
            text("learnt_at DESC"),
            text("statement_id DESC"),
            postgresql_where=text(IS_LESS_IMPORTANT),
        ),
        Index(
            "ix_statements_arrival",
            "owner_key",
            "line_id",
            "character",
            text("statement_id DESC"),
            postgresql_where=text(IS_IMPORTANT),
        ),
        Index(
            "ix_statements_decided",
            "owner_key",
            "line_id",
            "character",
            "key",
            postgresql_where=text("kind = 'memory' AND (content IS NULL OR forgotten IS NOT NULL)"),
        ),
        Index(
            "ix_statements_important",
            "owner_key",
            "line_id",
            "character",
            text("importance DESC"),
            text("learnt_at DESC"),
            text("statement_id DESC"),
            postgresql_where=text(IS_PRESENT_IMPORTANT),
        ),
        {"info": {"has_lines": False}},
    )

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    statement_id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    character: Mapped[str] = mapped_column(server_default="")
    key: Mapped[str] = mapped_column(Text)
    content: Mapped[str | None] = mapped_column(Text)
    tokens: Mapped[int] = mapped_column(server_default="0")
    origin: Mapped[str]
    is_set: Mapped[bool] = mapped_column(server_default="false")
    edited: Mapped[bool] = mapped_column(server_default="false")
    learnt_at: Mapped[datetime] = mapped_column(Time)
    operation: Mapped[str | None]
    pattern: Mapped[str | None] = mapped_column(Text)
    category: Mapped[str | None]
    importance: Mapped[float | None]
    tags: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    pinned: Mapped[bool] = mapped_column(server_default="false")
    archived: Mapped[bool | None]
    chosen: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    forgotten: Mapped[list[bytes] | None] = mapped_column(ARRAY(LargeBinary))


class Teaching(Table):
    """A record that a line taught a statement. It is copied, forked, cut off and erased with the line.

    `first_seq` is the seq of the message that taught the statement. For the call of a tool, this is the reply that the
    call is bound to, or the newest message while the reply is still to come. `hidden` is true while the message has
    another text, is deleted or hidden by a person, or is still to come; if the service learnt from the message, also
    while it is excluded. For the call of a tool, `teaching_id` is the id of the call's binding. If the service learnt
    from a message, `message_id` is the message, and `text_hash` the hash of the text that it read; otherwise both are
    null. `said_at` is when the message was sent or when it was read, whichever is earlier. It is null for the call of a
    tool, and in rows from before the column existed: the `learnt_at` of the statement then takes its place. `wide_key`
    is the owner of the statement if the owner is a user or a tenant. It is null for a statement of the chat itself; a
    fork gets copies of such statements.

    When the last teaching of a statement is deleted, a trigger deletes the statement, unless a person set it.
    """

    __tablename__ = "teachings"
    __table_args__ = (
        CheckConstraint("first_seq >= 0", name="first_seq"),
        CheckConstraint("(message_id IS NULL) = (text_hash IS NULL)", name="message"),
        Index("ix_teachings_statement", "statement_id"),
        Index("ix_teachings_seq", "chat_key", "line_id", "first_seq"),
        Index("ix_teachings_wide", "chat_key", "wide_key", postgresql_where=text("wide_key IS NOT NULL")),
        {"info": {"begins": "first_seq", "exported": "NOT hidden"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    teaching_id: Mapped[UUID] = mapped_column(primary_key=True)
    layer: Mapped[str]
    statement_id: Mapped[UUID]
    wide_key: Mapped[UUID | None]
    first_seq: Mapped[int]
    hidden: Mapped[bool] = mapped_column(server_default="false")
    message_id: Mapped[str | None]
    text_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    said_at: Mapped[datetime | None] = mapped_column(Time)
