"""Restores a vault as a new chat, in the transaction of the caller: a vault with an error leaves nothing behind.

A *statement* is one fact, operation on a block, or memory, and belongs to a scope: the chat, its user or the tenant. A
*teaching* records from which message a statement was learnt.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
from pydantic import TypeAdapter, ValidationError

from app.chats.chat_lock import ChatRef
from app.chats.errors import ChatTaken, busy_if_locked
from app.chats.events import CurrentLineReplaced, SettingsChanged
from app.chats.heads import lock_line
from app.chats.models import CURRENT
from app.chats.revision import register_new
from app.chats.schemas import ChatPut
from app.chats.service import SCOPE_SETTINGS, may_choose_scope
from app.kit import work_queue
from app.kit.auth import Forbidden
from app.kit.db import DbSession, defer
from app.kit.ids import tenant_key, user_key
from app.kit.owners import CHAT_WIDE, NO_LINE, Owner
from app.kit.validation_errors import word_error
from app.kit.wire import STORED, UtcDatetime
from app.kit.work_queue import NewWork, WorkScheduled
from app.knowledge.cache import note_change
from app.knowledge.service import MAX_STORED_KEYS
from app.layers.layer import Layer
from app.memos.models import Memo
from app.messages.range_reads import find_wrong_counter, has_message_above_head
from app.passages.handlers import schedule_all
from app.vault import queries
from app.vault.archive import STATE, VaultFiles, read_state
from app.vault.errors import InvalidVault
from app.vault.row_forms import Check, StateForms, find_invalid_characters, find_invalid_settings, map_layers
from app.vault.state_file import Row
from app.vault.tables import CHATS, MESSAGES, STATEMENTS, TEACHINGS, WORK, VaultTable, list_vault_tables

_BATCH_ROWS, _BATCH_BYTES = 500, 256 * 1024

_TIME: TypeAdapter[datetime] = TypeAdapter(UtcDatetime)
_MEMOS = Memo.__tablename__
_BEGINNINGS = ("seq", "first_seq", "begins_seq")
_CHECKED = ("characters", "user_name", "user_persona", "system_prompt", "time_zone", "language", "metadata")

MAX_LINES = 10_000
MAX_WIDE_STATEMENTS = 20_000
"""The maximum number of statements in a vault that belong to the scope of a user or a tenant."""


async def restore_vault(
    db_session: DbSession, vault: VaultFiles, ref: ChatRef, layers: Sequence[Layer], *, now: datetime
) -> UUID:
    """Create the chat `ref` from a vault, with all of its lines, and return the id of its current line.

    The new chat gets the user of the vault, unless the caller's token is limited. With a token that is limited to a
    user, the chat gets this user. With a token that is limited only to a chat, it gets no user, because such a token
    cannot give a chat a user.

    Statements of the user and the tenant are written to their scopes again, with two exceptions. If the chat has no
    user, these statements belong to the new chat alone. If the caller's token is limited to a user, only the statements
    of this user are written to the user's scope; statements of another user and of the tenant belong to the new chat
    alone.

    The layers schedule what is missing or stale on the current line. The only due work in a vault is about messages
    that no row of a layer is about yet (`Layer.planned`); it is scheduled on all lines.

    Raises InvalidVault, ChatTaken, ChatBusy. Raises Forbidden if the caller's token is limited only to the chat and the
    vault contains statements of a wider scope. Also raises Forbidden if the settings of a line select a scope that the
    caller may not choose (`may_choose_scope`).
    """
    restoring = _Restoring(db_session, ref, layers, now)
    batches = _form_batches(read_state(vault))
    while batch := await asyncio.to_thread(next, batches, None):
        await restoring.insert(batch)
    line_id = await restoring.check()
    try:
        await _schedule(db_session, (ref.key, line_id), layers, now=now)
    except (LookupError, TypeError, ValueError, AttributeError, asyncpg.DataError):
        raise InvalidVault(f"{STATE}: the rows of the chat do not fit together.") from None
    defer(db_session, CurrentLineReplaced(ref.tenant, ref.key))
    defer(db_session, WorkScheduled())
    for key in restoring.wide_keys:
        note_change(db_session, ref.tenant, key)
    return line_id


class _Restoring:
    """The state of one restoration."""

    def __init__(self, db_session: DbSession, ref: ChatRef, layers: Sequence[Layer], now: datetime) -> None:
        self._db_session = db_session
        self._now = now
        self._ref = ref
        self._forms = StateForms(layers)
        self._layers = map_layers(layers)
        self._tables = {table.name: table for table in list_vault_tables()}
        self._columns = dict[str, frozenset[str]]()
        self._checks = dict[str, Check]()
        self._has_user = False
        self._user_id: str | None = None
        self._of_user: UUID | None = None
        self._of_tenant: UUID | None = None
        self._wide = set[str]()
        self._taught = set[str]()
        self.line_ids = dict[str, int]()
        self.wide_keys = set[UUID]()

    async def insert(self, batch: Sequence[Row]) -> None:
        """Check and insert rows of one table."""
        name = batch[0].table
        table = self._tables.get(name)
        if table is None:
            raise _wrong(batch[0], f"the table {name!r} is unknown")
        if name not in self._columns:
            self._check_order(batch[0])
            self._columns[name] = frozenset(batch[0].fields)
            self._checks[name] = table.make_check()
            if unknown := sorted(self._columns[name] - table.columns):
                raise _wrong(batch[0], f"{name} has no column {unknown[0]!r}")
        for row in batch:
            if row.fields.keys() != self._columns[name]:
                raise _wrong(row, "has other fields than the row before it")
        for row in batch:
            self._check_row(row)
            _check_times(row, table.times)
            if problem := self._checks[name](row.fields):
                raise _wrong(row, problem)
            self._check_seqs(row)
        await self._write(table, batch)

    async def check(self) -> UUID:
        """Check what no constraint of the database checks; return the id of the current line. Raises InvalidVault."""
        if self._taught - self._wide:
            raise InvalidVault(f"{STATE}: a teaching belongs to a statement of a wider scope that is not in the vault.")
        if self._wide - self._taught:
            raise InvalidVault(f"{STATE}: a statement of a wider scope was taught by no message of the chat.")
        found = await queries.find_current(self._db_session, self._ref.key)
        if found is None:
            raise InvalidVault(f"{STATE}: there is no chat in the vault.")
        if await has_message_above_head(self._db_session, self._ref.key):
            raise InvalidVault(f"{STATE}: a message is above its line's head_seq.")
        wrong = await find_wrong_counter(self._db_session, self._ref.key) or await queries.find_wrong_number(
            self._db_session, self._ref.key
        )
        if wrong:
            raise InvalidVault(f"{STATE}: chats.{wrong[0]}: must be {wrong[1]}, as the rows of the line are.")
        for key in self.wide_keys:
            if await queries.count_most_keys(self._db_session, key) > MAX_STORED_KEYS:
                raise InvalidVault(
                    f"{STATE}: a scope of the user or of the tenant would have more than {MAX_STORED_KEYS:,} facts"
                    f" or more than {MAX_STORED_KEYS:,} blocks, including those without a value."
                )
        return found

    def _check_order(self, row: Row) -> None:
        """Check that the tables come in the order of an export. Raises InvalidVault.

        `chats` must be the first: it decides into which scopes the rows of `statements` and `teachings` are written.
        """
        names = list(self._tables)
        following = names[names.index(row.table) + 1 :]
        if later := [name for name in following if name in self._columns]:
            raise _wrong(row, f"the rows of {row.table} must come before those of {later[0]}")

    def _check_row(self, row: Row) -> None:
        fields = row.fields
        match row.table:
            case "chats":
                self._check_line(row)
            case "statements":
                if fields.get("scope") != "chat":
                    self._check_wide(row, self._wide)
                    if fields.get("is_set"):
                        raise _wrong(row, "a statement of a wider scope cannot be one that a person set")
            case _:
                line_id = fields.get("line_id")
                if not isinstance(line_id, str) or line_id not in self.line_ids:
                    raise _wrong(row, "line_id: the chat has no such line")
                if "layer" in fields and not self._is_layer(row.table, fields["layer"]):
                    raise _wrong(row, f"layer: must be one of {', '.join(sorted(self._layers[row.table]))}")
                if row.table == TEACHINGS and fields.get("scope") != "chat":
                    self._check_wide(row, self._taught)

    def _is_layer(self, table: str, name: Any) -> bool:
        return isinstance(name, str) and name in self._layers[table]

    def _check_seqs(self, row: Row) -> None:
        """Check that no row begins after the message that would be next, and that no memo ends after the last one.

        The messages are checked when all are there, and statements have no line.
        """
        most = self.line_ids.get(row.fields.get("line_id", ""))
        if most is None or row.table in (CHATS, MESSAGES):
            return
        if row.table == WORK and (problem := self._forms.find_problem_of_work(row.fields, most)):
            raise _wrong(row, problem)
        for name in _BEGINNINGS:
            if (row.fields.get(name) or 0) > most + 1:
                raise _wrong(row, f"{name}: is above the line's head_seq, {most}")
        if row.table == _MEMOS and (row.fields.get("last_seq") or 0) > most:
            raise _wrong(row, f"last_seq: is above the line's head_seq, {most}")

    def _check_line(self, row: Row) -> None:
        fields = row.fields
        line_id = fields.get("line_id")
        if not isinstance(line_id, str) or not _is_line(line_id) or line_id in self.line_ids:
            raise _wrong(row, "line_id: must be a UUID that no other line has")
        if len(self.line_ids) >= MAX_LINES:
            raise _wrong(row, f"the chat has more than {MAX_LINES:,} lines")
        if (fields.get("line_status") == CURRENT) == bool(self.line_ids):
            raise _wrong(row, "line_status: must be current in the first line, and in no other")
        _check_fields(row)
        if problem := self._forms.find_problem(fields):
            raise _wrong(row, problem)
        self.line_ids[line_id] = fields.get("head_seq", 0)
        settings = fields.get("settings")
        for section, name in SCOPE_SETTINGS:
            chosen = settings.get(section) if isinstance(settings, dict) else None
            scope = chosen.get(name) if isinstance(chosen, dict) else None
            if not may_choose_scope(self._ref, scope):
                raise Forbidden(f"This token cannot import the setting {section}.{name}: {scope!r}.")

    def _check_wide(self, row: Row, statement_ids: set[str]) -> None:
        """Check a row of a user's or the tenant's scope, and add its statement's id to `statement_ids`."""
        if self._ref.only_chat:
            raise Forbidden("A token that is limited to the chat cannot import what a user or a tenant knows.")
        statement_id = row.fields.get("statement_id")
        if row.fields.get("scope") not in ("user", "tenant"):
            raise _wrong(row, "scope: must be chat, user or tenant")
        if not isinstance(statement_id, str):
            raise _wrong(row, "statement_id: must be a UUID")
        if len(statement_ids) >= MAX_WIDE_STATEMENTS:
            raise _wrong(row, f"the chat taught more than {MAX_WIDE_STATEMENTS:,} statements of wider scopes")
        statement_ids.add(statement_id)
        key = self._of_user if row.fields["scope"] == "user" else self._of_tenant
        if key is not None:
            self.wide_keys.add(key)

    async def _schedule_planned(self, batch: Sequence[Row]) -> None:
        """Schedule work items; those of the current line, which is the first one, are due at once."""
        items = defaultdict[tuple[str, str], dict[str, NewWork]](dict)
        for row in batch:
            fields = row.fields
            of_layer = items[fields["line_id"], fields["layer"]]
            if fields["key"] in of_layer:
                raise _wrong(row, "work contains this item twice")
            of_layer[fields["key"]] = NewWork(fields["key"], fields["at_seq"], fields["payload"])
        current = next(iter(self.line_ids))
        for (line_id, layer), of_layer in items.items():
            owner = Owner.of_line(self._ref.tenant, self._ref.key, UUID(line_id))
            await work_queue.schedule(
                self._db_session,
                owner,
                layer,
                list(of_layer.values()),
                now=self._now,
                settle_s=self._db_session.settle_s,
                parked=line_id != current,
            )

    async def _write(self, table: VaultTable, batch: Sequence[Row]) -> None:
        given = b"[" + b",".join(row.written for row in batch) + b"]"
        text = given.decode()
        scopes: tuple[Any, ...] = (self._of_user, self._of_tenant) if table.has_scopes else ()
        if table.name == CHATS:
            if not self._has_user:
                self._choose_user(batch[0])
            of_user = user_key(self._ref.tenant, self._user_id) if self._user_id else None
            scopes = (self._ref.tenant, self._ref.chat_id, self._user_id, of_user)
        columns = sorted(self._columns[table.name] - {"scope", "user_id"})
        try:
            if table.name == WORK:
                await self._schedule_planned(batch)
                return
            with busy_if_locked():
                await queries.insert(self._db_session, table.write_insert(columns), self._ref.key, text, *scopes)
            if table.name == STATEMENTS and await queries.differs(self._db_session, self._ref.key, text, *scopes):
                raise _wrong(batch[0], "a statement of these rows is known already, with other words")
        except asyncpg.UniqueViolationError as error:
            # `_check_line` refuses a second row of a line and a second current line, so the chat exists already.
            if error.constraint_name in ("uq_chats_current", "pk_chats"):
                raise self._taken() from None
            raise _wrong(batch[0], f"from this row on, {table.name} contains a row twice") from None
        except asyncpg.IntegrityConstraintViolationError as error:
            problem = f"violates {error.constraint_name}" if error.constraint_name else "lacks a required value"
            raise _wrong(batch[0], f"from this row on, a row of {table.name} {problem}") from None
        except (asyncpg.DataError, asyncpg.ProgramLimitExceededError):
            raise _wrong(batch[0], f"from this row on, a value does not fit its column in {table.name}") from None

    def _choose_user(self, row: Row) -> None:
        """Decide by the current line whose chat it is, and into whose scopes its statements are written."""
        self._has_user = True
        user_id = row.fields.get("user_id")
        if not (user_id is None or (isinstance(user_id, str) and 1 <= len(user_id) <= 200)):
            raise _wrong(row, "user_id: must be a text of 1 to 200 characters, or null")
        self._user_id = self._ref.only_user if self._ref.is_limited else user_id
        if self._user_id is not None and self._user_id == user_id:
            self._of_user = user_key(self._ref.tenant, self._user_id)
        if self._user_id is not None and not self._ref.is_limited:
            self._of_tenant = tenant_key(self._ref.tenant)

    def _taken(self) -> ChatTaken:
        chat_id = self._ref.chat_id
        return ChatTaken(
            f"There is already a chat {chat_id!r}; choose another chat_id.",
            errors=[{"loc": ["query", "chat_id"], "msg": "is taken", "id": chat_id}],
        )


def _check_fields(row: Row) -> None:
    """Check the fields of a line that no constraint checks and that every read needs. Raises InvalidVault."""
    for name in ("settings", "metadata", "cursors", "context_cache"):
        if not isinstance(row.fields.get(name, {}), dict):
            raise _wrong(row, f"{name}: must be a JSON object")
    given = {name: row.fields[name] for name in _CHECKED if row.fields.get(name) is not None}
    if isinstance(characters := given.get("characters"), list):
        given["characters"] = [
            {name: value for name, value in one.items() if name != "hashed_name"} if isinstance(one, dict) else one
            for one in characters
        ]
    try:
        ChatPut.model_validate(given, context=STORED)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise _wrong(row, f"{location}: {word_error(first)}") from None
    characters, settings = row.fields.get("characters", []), row.fields.get("settings", {})
    if problem := find_invalid_characters(characters) or find_invalid_settings(settings):
        raise _wrong(row, problem)


def _check_times(row: Row, names: Iterable[str]) -> None:
    """Check that Python can represent the times of a row, so that the chat can be read. Raises InvalidVault."""
    for name in names:
        if (written := row.fields.get(name)) is None:
            continue
        try:
            _TIME.validate_python(written)
        except ValidationError as error:
            problem = word_error(error.errors(include_url=False, include_input=False)[0])
            raise _wrong(row, f"{name}: {problem}") from None


async def _schedule(db_session: DbSession, line: tuple[UUID, UUID], layers: Sequence[Layer], *, now: datetime) -> None:
    """Let the layers schedule what is missing or stale, as when they are switched on.

    Changes that the layers make in `head` are not stored, because the chat itself has not changed.
    """
    register_new(db_session, line, await queries.get_revision(db_session, line))
    head = await lock_line(db_session, *line)
    if head is None:
        raise LookupError(f"the line {line[1]} does not exist")
    event = SettingsChanged(head=head, now=now, settle_s=db_session.settle_s)
    for layer in layers:
        await layer.on_settings_changed(db_session, event)
    await schedule_all(db_session, head, now=now)


def _form_batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows in batches, each for one INSERT into one table."""
    batch, size = list[Row](), 0
    for row in rows:
        if batch and (row.table != batch[0].table or len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row.written)
    if batch:
        yield batch


def _is_line(written: str) -> bool:
    """Return whether a text is the id of a line, as PostgreSQL writes it, and not a reserved one."""
    try:
        line_id = UUID(written)
    except ValueError:
        return False
    return str(line_id) == written and line_id not in (NO_LINE, CHAT_WIDE)


def _wrong(row: Row, problem: str) -> InvalidVault:
    return InvalidVault(f"{STATE}: line {row.number}: {' '.join(problem.split())}.")
