"""The revision of a line: a number on its row that rises by one with every committed change.

A line that becomes current gets a higher revision than the former current line had (`app/lines`).

Locking a line registers its row here. The unit of work raises the number just before the commit, unless a statement
that writes the row anyway has already done so. A transaction that locks a line and calls none of the `record`
functions counts as a change of the whole line. This costs time, but makes no answer wrong.

`changed` has the revision of the last change of each part, by name: `messages`, `settings`, `work`, `line`, the layers'
names and `recap`. A name that is missing has the revision of the name `line`.
"""

from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import orjson

from app.kit.db import DbSession

Line = tuple[UUID, UUID]

MESSAGES, SETTINGS, WORK, LINE = "messages", "settings", "work", "line"
"""The names of changes that belong to no layer."""

_LINES = 0
"""The position of lines in `DbSession.last_writes`: before users and tenants."""

_WRITE = """
    UPDATE chats SET revision = $3, base_revision = CASE WHEN $4 THEN $3 ELSE base_revision END,
        changed = CASE WHEN $5 THEN $6::jsonb ELSE changed || $6::jsonb END
    WHERE chat_key = $1 AND line_id = $2"""


def raise_others(name: str) -> dict[str, str]:
    """Return SET expressions (column to SQL) for an UPDATE of all lines of a chat; `name` is the name of the change.

    They raise the revision of each line that is not current. The current line is locked, so its revision rises before
    the commit anyway.
    """
    return {
        "revision": "revision + (line_status <> 'current')::int",
        "base_revision": "CASE WHEN line_status = 'current' THEN base_revision ELSE revision + 1 END",
        "changed": "CASE WHEN line_status = 'current' THEN changed"
        f" ELSE changed || jsonb_build_object('{name}', revision + 1) END",
    }


@dataclass(slots=True)
class LineRevision:
    """The revision that a locked line will have when the transaction commits.

    Attributes:
        line: The chat's key and the line's id.
        number: The revision.
        is_new: Whether the statement that created the row, or made it the current line, has already written the number.
        locks: How often the transaction has locked the line. Each part of the code that locks the line also records
            its own changes. `base_revision` is the revision of the last change that was more than an append. It stays
            as it is if each lock is followed by a `record_append` or a `record_nothing`, and no `record` is
            `in_context`.

    """

    line: Line
    number: int
    is_new: bool = False
    locks: int = 0
    _keeps: int = 0
    _appends: int = 0
    _names: set[str] = field(default_factory=set)
    _alters_base: bool = False
    _is_written: bool = False

    def record(self, *names: str, in_context: bool) -> None:
        """Record that `names` change."""
        self._is_written &= self._names.issuperset(names) and (self._alters_base or not in_context)
        self._names.update(names)
        self._alters_base |= in_context

    def record_append(self) -> None:
        """Record that messages are appended and nothing else changes, unless `record` is called too."""
        self._names.add(MESSAGES)
        self._appends += 1

    def keep(self) -> None:
        """Record that nothing has changed since the last lock."""
        self._keeps += 1

    def take(self) -> tuple[int, bool, bool, str]:
        """Return the arguments of a statement that writes the row; `write` then does nothing, unless more is recorded.

        They are the number, whether it becomes `base_revision`, whether `changed` is replaced and not merged, and the
        numbers of the changes by name, as JSON.
        """
        self._is_written = True
        replaces = self.is_new or not self._names
        names = {LINE} if replaces else self._names
        only_appends = not self._alters_base and self._appends + self._keeps == self.locks
        changed = orjson.dumps(dict.fromkeys(names, self.number)).decode()
        return self.number, replaces or not only_appends, replaces, changed

    async def write(self, db_session: DbSession) -> None:
        """Write the number, unless another statement has done so or nothing changed."""
        is_untouched = self._keeps == self.locks and not self._names
        if not (is_untouched or self._is_written or self.is_new):
            await db_session.raw.execute(_WRITE, *self.line, *self.take())


def begin_revision(number: int) -> dict[str, int | str]:
    """Return the columns of a line that begins with this revision. All parts of the line count as changed in it."""
    return {"revision": number, "base_revision": number, "changed": orjson.dumps({LINE: number}).decode()}


def register(db_session: DbSession, line: Line, former: int) -> None:
    """Have the transaction raise the revision of a line that it has just locked; `former` is the row's revision."""
    db_session.last_writes.setdefault((_LINES, *line), LineRevision(line, former + 1))
    revision_of(db_session, line).locks += 1


def register_new(db_session: DbSession, line: Line, number: int) -> None:
    """Register a row that this transaction has created or made the current line.

    The statement that did so has already written `number` as its revision.
    """
    db_session.last_writes[_LINES, *line] = LineRevision(line, number, is_new=True)


def revision_of(db_session: DbSession, line: Line) -> LineRevision:
    """Return the revision of a locked line. Raises LookupError if the line is not locked."""
    found = db_session.last_writes.get((_LINES, *line))
    if found is None:
        raise LookupError(f"the line {line[1]} is not locked")
    return cast("LineRevision", found)


def record(db_session: DbSession, line: Line, *names: str, in_context: bool = True) -> None:
    """Record what the transaction changes on a locked line. Raises LookupError if the line is not locked.

    Args:
        db_session: Open unit of work.
        line: The chat's key and the line's id.
        names: The names of the changes: a layer's name, `recap`, or one of the names of this module.
        in_context: Whether contexts can show the change. If not, a transaction that otherwise only appends leaves
            `base_revision` as it is.

    """
    revision_of(db_session, line).record(*names, in_context=in_context)


def record_append(db_session: DbSession, line: Line) -> None:
    """Record that the transaction appends messages and changes nothing else, unless `record` is called too."""
    revision_of(db_session, line).record_append()


def record_nothing(db_session: DbSession, line: Line) -> None:
    """Record that the transaction locked a line and changed nothing, for example because the request is a retry."""
    revision_of(db_session, line).keep()
