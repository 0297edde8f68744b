"""The revision of a line: a number on its row that rises by one with every committed change.

Locking a line registers its row here, and the unit of work raises the number just before the commit, unless a
statement that writes the row anyway has done so. Forgetting to say what changed is slow, never wrong: without more, a
transaction that locked a line has changed all of it.

`changed` holds, by name, the revision of the last change: `messages`, `settings`, `work`, `line`, the layers' names and
`recap`. A name that it lacks has the number of `line`.
"""

from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import orjson

from app.kit.db import DbSession

Line = tuple[UUID, UUID]

MESSAGES, SETTINGS, WORK, LINE = "messages", "settings", "work", "line"
"""The names of what belongs to no layer."""

_LINES = 0
"""The position in `DbSession.last_writes`: before users and tenants."""

_WRITE = """
    UPDATE chats SET revision = $3, base_revision = CASE WHEN $4 THEN $3 ELSE base_revision END,
        changed = CASE WHEN $5 THEN $6::jsonb ELSE changed || $6::jsonb END
    WHERE chat_key = $1 AND line_id = $2"""


def raise_others(name: str) -> dict[str, str]:
    """Return the columns, with SQL, by which a statement on all lines of a chat raises those that are not current."""
    return {
        "revision": "revision + (standing <> 'current')::int",
        "base_revision": "CASE WHEN standing = 'current' THEN base_revision ELSE revision + 1 END",
        "changed": "CASE WHEN standing = 'current' THEN changed"
        f" ELSE changed || jsonb_build_object('{name}', revision + 1) END",
    }


@dataclass(slots=True)
class LineRevision:
    """The revision that a locked line has once the transaction commits.

    Attributes:
        line: The chat's key and the line's id.
        number: That revision.
        is_new: Whether the row gets the number where this transaction creates it, or makes it the current one.
        locks: How often the transaction has locked the line. One that locks it twice, and keeps or appends once, has
            changed it in another way too.

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
        """Note that `names` change."""
        self._is_written &= self._names.issuperset(names) and (self._alters_base or not in_context)
        self._names.update(names)
        self._alters_base |= in_context

    def record_append(self) -> None:
        """Note that messages are appended, and that nothing else changes unless `record` says so."""
        self._names.add(MESSAGES)
        self._appends += 1

    def keep(self) -> None:
        """Note that nothing has changed since the last lock."""
        self._keeps += 1

    def take(self) -> tuple[int, bool, bool, str]:
        """Return the values for a statement that writes the row: number, alters the base, replaces `changed`, names.

        Until more is recorded, no other statement is needed.
        """
        self._is_written = True
        replaces = self.is_new or not self._names
        names = {LINE} if replaces else self._names
        only_appends = not self._alters_base and self._appends + self._keeps == self.locks
        changed = orjson.dumps(dict.fromkeys(names, self.number)).decode()
        return self.number, replaces or not only_appends, replaces, changed

    async def write(self, db_session: DbSession) -> None:
        """Raise the number, if no other statement has."""
        is_kept = self._keeps == self.locks and not self._names
        if not (is_kept or self._is_written or self.is_new):
            await db_session.raw.execute(_WRITE, *self.line, *self.take())


def begin_revision(number: int) -> dict[str, int | str]:
    """Return the columns of a line that begins with a revision: everything of it has changed."""
    return {"revision": number, "base_revision": number, "changed": orjson.dumps({LINE: number}).decode()}


def register(db_session: DbSession, line: Line, former: int) -> None:
    """Have the transaction raise the revision of a line, which it has just locked; `former` is what the row has."""
    db_session.last_writes.setdefault((_LINES, *line), LineRevision(line, former + 1))
    revision_of(db_session, line).locks += 1


def register_new(db_session: DbSession, line: Line, number: int) -> None:
    """Note the revision of a row that this transaction has created with it, or has made the current line."""
    db_session.last_writes[_LINES, *line] = LineRevision(line, number, is_new=True)


def revision_of(db_session: DbSession, line: Line) -> LineRevision:
    """Return the revision of a locked line. Raises LookupError for one that is not locked."""
    found = db_session.last_writes.get((_LINES, *line))
    if found is None:
        raise LookupError(f"the line {line[1]} is not locked")
    return cast("LineRevision", found)


def record(db_session: DbSession, line: Line, *names: str, in_context: bool = True) -> None:
    """Note what a transaction changes of a line that it has locked. Raises LookupError for one that is not locked.

    Args:
        db_session: Open unit of work.
        line: The chat's key and the line's id.
        names: What changes: a layer's name, `recap`, or one of the names of this module.
        in_context: Whether contexts can show it. False only where they show nothing of it; then an append that makes it
            remains a change of the messages after the head alone.

    """
    revision_of(db_session, line).record(*names, in_context=in_context)


def record_append(db_session: DbSession, line: Line) -> None:
    """Note that the transaction appends messages; only `record` can then say that it changes anything else."""
    revision_of(db_session, line).record_append()


def record_nothing(db_session: DbSession, line: Line) -> None:
    """Note that the transaction has locked a line and changed nothing: a retry, or work that another worker has."""
    revision_of(db_session, line).keep()
