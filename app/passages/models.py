"""The table of the index of words."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH

IS_ON_A_LINE = f"""EXISTS (
    SELECT FROM messages m
    WHERE m.chat_key = passages.chat_key AND m.message_id = passages.message_id AND m.digest = passages.digest
    {ONE_LOOKUP_EACH})"""
"""A line of the chat has the text of a row. SQL."""


class Passage(Table):
    """The keys by which one text of a message is found, as numbers (`keys.py`).

    A row belongs to the chat, and to each of its lines on which the message has a text with this `digest`. So a line
    that is copied, or that becomes the current one again, is in the index already, and a row is never out of date.
    """

    __tablename__ = "passages"
    __table_args__ = (
        CheckConstraint(f"line_id = '{CHAT_WIDE}'", name="line"),
        # New rows wait in a list until it is full, because to add each of them to the index takes ten times as long.
        # A search reads the whole list, so it is small.
        Index("ix_passages_keys", "keys", postgresql_using="gin", postgresql_with={"gin_pending_list_limit": 256}),
        {"info": {"has_lines": False, "kept_if": IS_ON_A_LINE}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    keys: Mapped[list[int]] = mapped_column(ARRAY(Integer))
