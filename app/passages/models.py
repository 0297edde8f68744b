"""The tables of the index of words, and of vectors."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, SmallInteger
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import UserDefinedType

from app.kit.db import Table
from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH


def write_is_on_a_line(table: str) -> str:
    """Return the SQL condition that a line of the chat has the text that a row of the index is about."""
    return f"""EXISTS (
    SELECT FROM messages m
    WHERE m.chat_key = {table}.chat_key AND m.message_id = {table}.message_id AND m.digest = {table}.digest
    {ONE_LOOKUP_EACH})"""


class HalfVector(UserDefinedType[str]):
    """The type `halfvec` of pgvector: numbers of 16 bits, as many as the model gives. In Python, a value is a text."""

    cache_ok = True

    def get_col_spec(self, **_options: object) -> str:
        """Return the name of the type."""
        return "halfvec"


ischema_names["halfvec"] = HalfVector  # so that a comparison of the database with the models knows the type


class Passage(Table):
    """The keys by which one text of a message is found, as numbers (`keys.py`).

    A row belongs to the chat, and to each of its lines on which the message has a text with this `digest`. So a line
    that is copied, or that becomes the current one again, is in the index already, and a row is never out of date.
    """

    __tablename__ = "passages"
    __table_args__ = (
        CheckConstraint(f"line_id = '{CHAT_WIDE}'", name="line"),
        # New rows wait in a list until the list is full: to add each row at once would take ten times as long. A search
        # reads the whole list, so the limit of the list is low.
        Index("ix_passages_keys", "keys", postgresql_using="gin", postgresql_with={"gin_pending_list_limit": 256}),
        {"info": {"has_lines": False, "kept_if": write_is_on_a_line("passages")}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    keys: Mapped[list[int]] = mapped_column(ARRAY(Integer))


class PassageVector(Table):
    """The vector of one text of a message, or of one part of a long text.

    The vector is made of the text with the speaker's name before it. Like a row of `passages`, it belongs to each line
    on which the message has a text with this `digest`.
    """

    __tablename__ = "vectors"
    __table_args__ = (
        CheckConstraint(f"line_id = '{CHAT_WIDE}'", name="line"),
        {"info": {"has_lines": False, "kept_if": write_is_on_a_line("vectors")}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    model_id: Mapped[int] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    part: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    vector: Mapped[str] = mapped_column(HalfVector)


class TextVector(Table):
    """The vector of one text of a layer, such as a memory or a memo, or of one part of a long text.

    A row belongs to each text on the chat's current line that has this `digest` (SHA-256), whichever layer the text is
    from. The texts of other lines have no vectors.
    """

    __tablename__ = "text_vectors"
    __table_args__ = (CheckConstraint(f"line_id = '{CHAT_WIDE}'", name="line"), {"info": {"has_lines": False}})

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    model_id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    part: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    vector: Mapped[str] = mapped_column(HalfVector)
