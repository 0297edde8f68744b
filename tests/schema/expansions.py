"""Finds the steps of a migration that the processes of the release before could not work with.

A migration is rendered as SQL, as `alembic upgrade --sql` would, so it does not matter how a step is written. A
statement passes only if it is known to add something or to relax a rule; every other statement is a contraction.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

_SPLITS = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | (?P<text>'(?:[^']|'')*') | "(?P<name>[^"]+)"
    | \$(?P<tag>\w*)\$(?P<body>.*?)\$(?P=tag)\$""",
    re.VERBOSE | re.DOTALL,
)
_CREATE_TABLE = re.compile(r"create (?:unlogged )?table (?:if not exists )?(\w+)")
_CREATE_INDEX = re.compile(
    r"create (?P<unique>unique )?index (?:concurrently )?(?:if not exists )?(?P<name>\w+) on (?:only )?(?P<table>\w+)"
)
_OF_ALL_ROWS = re.compile(r"create (?:unique )?index \w+ on \w+ \([\w, ]+\)(?: where \w+ is not null)?$")
_DROP_INDEX = re.compile(r"drop index (?:if exists )?(\w+)$")
_DROP_TABLE = re.compile(r"drop table (?:if exists )?(\w+)$")
_ALTER_TABLE = re.compile(r"alter table (?:if exists )?(?:only )?(\w+) (.+)")
_ADD_COLUMN = re.compile(
    r"add (?:column )?(?:if not exists )?(?!(?:constraint|check|unique|primary|foreign)\b)(\w+) (.+)"
)
_ADD_CHECK = re.compile(r"add constraint (\w+) check ?\((.+)\)(?: not valid)?$")
_DROP_CHECK = re.compile(r"drop constraint (?:if exists )?(ck_\w+)$")
_HARMLESS = re.compile(r"(?:comment on|analyze|create extension|set local|set lock_timeout) ?")
_HARMLESS_ACTION = re.compile(
    r"alter (?:column )?\w+ (?:set statistics|set storage|set default|drop not null)\b"
    r"|(?:re)?set \(|validate constraint "
)
_ROWS = re.compile(r"(?:insert|update|select|with|values)\b")
_REMOVES = re.compile(r"\b(?:delete|truncate|drop|alter)\b")
_ACTS = re.compile(r"\b(?:delete|truncate|drop|alter|create|execute)\b")
_RESTRICTS = re.compile(r"\b(?:unique|primary key|references|check|generated)\b")
_REFERENCES = re.compile(r"\breferences (\w+)")
_OPERATORS = {
    *("and", "or", "not", "in", "is", "null", "true", "false", "between", "like", "any", "array", "distinct", "from"),
}


@dataclass(slots=True)
class Judge:
    """Judges the statements of the migrations of one release, in their order.

    Attributes:
        tables: The tables that the release has created; the release before does not know them.

    """

    tables: set[str] = field(default_factory=set)
    _columns: set[str] = field(default_factory=set, init=False)
    _dropped: set[str] = field(default_factory=set, init=False)
    _widened: frozenset[str] = field(default=frozenset(), init=False)
    _rebuilt: frozenset[str] = field(default=frozenset(), init=False)
    _missing: set[str] = field(default_factory=set, init=False)

    def list_faults(self, module: ModuleType, released: Sequence[str]) -> list[str]:
        """Return what is wrong with a migration; `released` are the releases before its own, the oldest first."""
        self._columns, self._dropped = set(), set()
        self._widened = frozenset(getattr(module, "widens", ()))
        self._rebuilt, self._missing = frozenset(getattr(module, "rebuilds", ())), set()
        try:
            statements = [statement for text in render(module) for statement in split(text)]
        except AttributeError as error:
            return [f"needs a database to be written as SQL: {error}"]
        contracting = [statement for statement in statements if not self._expands(statement)]
        faults = [f"`widens` names {name}, which is not dropped" for name in sorted(self._widened - self._dropped)]
        faults += [f"`rebuilds` names {name}, which is not dropped" for name in sorted(self._rebuilt - self._dropped)]
        faults += [f"does not create {name} again" for name in sorted(self._missing)]
        unused_since = getattr(module, "unused_since", None)
        if unused_since is None:
            return faults + [f"contracts: {statement[:120]}" for statement in contracting]
        if not contracting:
            faults.append("`unused_since` is set, but nothing is contracted")
        if unused_since not in released:
            faults.append(f"`unused_since` names {unused_since}, which is not a release before this one")
        return faults

    def _expands(self, statement: str) -> bool:
        if created := _CREATE_TABLE.match(statement):
            self.tables.add(created[1])
            return set(_REFERENCES.findall(statement)) <= self.tables
        if index := _CREATE_INDEX.match(statement):
            is_rebuilt = index["name"] in self._missing and _OF_ALL_ROWS.match(statement) is not None
            self._missing.discard(index["name"])
            return not index["unique"] or index["table"] in self.tables or is_rebuilt
        if (gone := _DROP_INDEX.match(statement)) and gone[1] in self._rebuilt:
            self._dropped.add(gone[1])
            self._missing.add(gone[1])
            return True
        if dropped := _DROP_TABLE.match(statement):
            return dropped[1] in self.tables
        if altered := _ALTER_TABLE.match(statement):
            relaxing = [self._relaxes(one) for one in split_actions(altered[2])]  # each is noted
            return altered[1] in self.tables or all(relaxing)
        if _ROWS.match(statement):
            return not _REMOVES.search(statement)
        if statement.startswith("do "):
            return not _ACTS.search(statement)
        return bool(_HARMLESS.match(statement))

    def _relaxes(self, action: str) -> bool:
        """Return whether an action of ALTER TABLE adds something or relaxes a rule."""
        if added := _ADD_COLUMN.match(action):
            self._columns.add(added[1])
            is_filled = " not null" not in f" {added[2]}" or " default " in f" {added[2]}"
            return is_filled and not _RESTRICTS.search(added[2])
        if check := _ADD_CHECK.match(action):
            name, condition = check.groups()
            words = set(re.findall(r"(?<!::)\b[a-z_]\w*\b", condition)) - _OPERATORS
            return words <= self._columns or name in self._widened & self._dropped
        if dropped := _DROP_CHECK.match(action):
            self._dropped.add(dropped[1])
            return True
        return bool(_HARMLESS_ACTION.match(action))


def render(module: ModuleType) -> list[str]:
    """Return the SQL of a migration's `upgrade`, one text for each operation."""
    written = _Written()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": written, "transactional_ddl": True}
    )
    with Operations.context(context):
        module.upgrade()
    return written.texts


def split(sql: str) -> list[str]:
    """Return the statements of an SQL text, with single spaces, in lower case, without comments and texts.

    The body of a DO block is kept, up to its first text.
    """

    def plain(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return "''"
        if found["body"] is not None:
            return f"$ {_SPLITS.sub(plain, found['body']).replace(';', ' ')} $"
        return found["name"] or " "

    statements = (re.sub(r"\s+", " ", one).strip().lower() for one in _SPLITS.sub(plain, sql).split(";"))
    return [one for one in statements if one]


def split_actions(actions: str) -> Iterator[str]:
    """Yield the actions of an ALTER TABLE: its parts between commas that are not in parentheses."""
    depth, begin = 0, 0
    for at, character in enumerate(actions):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield actions[begin:at].strip()
            begin = at + 1
    yield actions[begin:].strip()


def judge_releases(
    modules: Iterable[tuple[str, ModuleType]], heads: dict[str, str], first: str
) -> dict[str, list[str]]:
    """Return the faults of each migration after the release `first`, by revision.

    Args:
        modules: All migrations with their revisions, the oldest first.
        heads: The newest revision of each release, the oldest release first.
        first: The release from which on migrations are judged.

    Raises ValueError if the releases are not in the order of the migrations, or `first` is not one of them.

    """
    waiting, released = list(heads.items()), list[str]()
    judge, faults = Judge(), dict[str, list[str]]()
    for revision, module in modules:
        if first in released:
            faults[revision] = judge.list_faults(module, released)
        if waiting and waiting[0][1] == revision:
            released.append(waiting.pop(0)[0])
            judge = Judge()
    if waiting or first not in released:
        raise ValueError(f"not in the order of the migrations: {waiting or first}")
    return {revision: found for revision, found in faults.items() if found}


class _Written:
    """Collects what Alembic writes: one text for each operation."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> Any:
        self.texts.append(text)

    def flush(self) -> None:
        """Do nothing; the texts are in memory."""
