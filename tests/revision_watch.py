"""Triggers of the test databases: a commit that writes any row of a chat without raising its revision fails.

Statement triggers note in a schema of their own which lines a transaction has written, under which name of `changed`,
and which revisions it has raised. A deferred constraint trigger compares both at the commit. So the whole suite checks
the rule, with each of its tests. What counts:

- Every table whose key begins (chat_key, line_id), with all of its columns.
- What a chat itself knows: the statements under its key, which no line has, on its current line.
- Due work of a line, except for claims, renewals of leases, refused answers and what an attempt has made so far:
  `attempts`, `lease`, `leased_until`, `refusals`, `progress`. No answer shows them before the attempt has ended.
- The columns of `chats` itself, except for those of the revision.

A statement outside a transaction block is free: only a test writes like that, to bring about a state. The service
writes in units of work alone.

The tables of this schema are almost empty when a connection plans the comparison, and are full of rows later. So it
reads no table row by row: otherwise a statement that writes 20,000 lines compares for a minute.
"""

from collections.abc import Mapping, Sequence

import asyncpg

from app.kit.db import list_tables
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.layers.layer import Layer
from app.registry import LAYERS

_LOG = dict.fromkeys(("messages", "swipes", "revisions", "source_lines"), "'messages'") | {
    "work": "'work'",
    "chats": "''",
}
"""The name of a change in `changed`, as SQL, by table of the log; "" where any name will do."""

_IGNORED = {
    "work": ("attempts", "lease", "leased_until", "refusals", "progress"),
    "chats": ("revision", "base_revision", "changed"),
}

_SETUP = """
    CREATE SCHEMA IF NOT EXISTS watch;
    CREATE UNLOGGED TABLE IF NOT EXISTS watch.written (
        xid xid8 NOT NULL, chat_key uuid NOT NULL, line_id uuid NOT NULL, name text NOT NULL,
        PRIMARY KEY (xid, chat_key, line_id, name));
    CREATE UNLOGGED TABLE IF NOT EXISTS watch.raised (
        xid xid8 NOT NULL, chat_key uuid NOT NULL, line_id uuid NOT NULL, former bigint, PRIMARY KEY (xid, chat_key,
        line_id));

    CREATE OR REPLACE FUNCTION watch.compare() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
    DECLARE
        chat record;
        raised record;
    BEGIN
        DELETE FROM watch.written w
        WHERE w.xid = NEW.xid AND w.chat_key = NEW.chat_key AND w.line_id = NEW.line_id AND w.name = NEW.name;
        SELECT revision, changed, base_revision INTO chat FROM chats c
        WHERE c.chat_key = NEW.chat_key AND c.line_id = NEW.line_id;
        IF NOT FOUND OR current_query() IS DISTINCT FROM 'COMMIT' THEN
            RETURN NULL;
        END IF;
        SELECT former INTO raised FROM watch.raised r
        WHERE r.xid = NEW.xid AND r.chat_key = NEW.chat_key AND r.line_id = NEW.line_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'wrote % of line % without raising its revision', NEW.name, NEW.line_id;
        END IF;
        IF NEW.name <> '' AND coalesce(chat.changed ->> NEW.name, chat.changed ->> 'line')::bigint < chat.revision
        THEN
            RAISE EXCEPTION 'wrote % of line %, but changed is %', NEW.name, NEW.line_id, chat.changed;
        END IF;
        IF chat.base_revision > chat.revision OR chat.revision < raised.former + 1 THEN
            RAISE EXCEPTION 'raised line % from % to %', NEW.line_id, raised.former, to_jsonb(chat);
        END IF;
        RETURN NULL;
    END $$;
    DROP TRIGGER IF EXISTS compare ON watch.written;
    CREATE CONSTRAINT TRIGGER compare AFTER INSERT ON watch.written DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION watch.compare();

    CREATE OR REPLACE FUNCTION watch.note_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO watch.raised SELECT pg_current_xact_id(), t.chat_key, t.line_id, o.revision
        FROM now_there t JOIN were_there o USING (chat_key, line_id) WHERE t.revision > o.revision
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER watch_revisions AFTER UPDATE ON chats
        REFERENCING OLD TABLE AS were_there NEW TABLE AS now_there
        FOR EACH STATEMENT EXECUTE FUNCTION watch.note_revisions();

    CREATE OR REPLACE FUNCTION watch.note_new_lines() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO watch.raised SELECT pg_current_xact_id(), t.chat_key, t.line_id, NULL FROM now_there t
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER watch_new_lines AFTER INSERT ON chats
        REFERENCING NEW TABLE AS now_there FOR EACH STATEMENT EXECUTE FUNCTION watch.note_new_lines();
"""

_WATCH = """
    CREATE OR REPLACE FUNCTION watch.{table}_{event}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO watch.written SELECT DISTINCT pg_current_xact_id(), t.{key}, t.line_id, {name}
        FROM {rows} WHERE {which} AND t.line_id <> '{no_line}'
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER watch_{event} AFTER {event} ON {table} REFERENCING {transition}
        FOR EACH STATEMENT EXECUTE FUNCTION watch.{table}_{event}();
"""

# The name of a statement's layer is its kind in the plural. A deleted one was live on no line, or goes with its chat.
_WATCH_STATEMENTS = f"""
    CREATE OR REPLACE FUNCTION watch.statements_{{event}}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO watch.written SELECT DISTINCT pg_current_xact_id(), c.chat_key, c.line_id,
            CASE t.kind WHEN 'memory' THEN 'memories' ELSE t.kind || 's' END
        FROM now_there t JOIN chats c ON c.chat_key = t.owner_key AND c.line_status = 'current'
        WHERE t.line_id = '{CHAT_WIDE}'
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER watch_{{event}} AFTER {{event}} ON statements REFERENCING NEW TABLE AS now_there
        FOR EACH STATEMENT EXECUTE FUNCTION watch.statements_{{event}}();
"""

_TRANSITIONS = {
    "insert": ("NEW TABLE AS now_there", "now_there t"),
    "delete": ("OLD TABLE AS were_there", "were_there t"),
    "update": ("OLD TABLE AS were_there NEW TABLE AS now_there", "now_there t JOIN were_there o USING ({primary_key})"),
}


async def unwatch_revisions(url: str) -> None:
    """Drop the triggers, for tests that bring the schema back to where there was no revision."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute("DROP SCHEMA watch CASCADE")
    finally:
        await connection.close()


async def watch_revisions(url: str, layers: Sequence[Layer] = LAYERS) -> None:
    """Create the triggers on all tables with lines; a test that registers another layer calls it again."""
    names = _LOG | {
        str(table.name): "t.layer" if "layer" in table.c else f"'{layer.name}'"
        for layer in layers
        for table in layer.tables
    }
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(_SETUP)
        for table in list_tables():
            key = [column.name for column in table.primary_key]
            is_of_lines = key[:2] == ["chat_key", "line_id"] or table.name == "work"
            if is_of_lines and await connection.fetchval("SELECT to_regclass($1)", table.name):
                for event in _TRANSITIONS:
                    await connection.execute(_write_trigger(table.name, key, event, names))
        if await connection.fetchval("SELECT to_regclass('statements')"):
            for event in ("insert", "update"):
                await connection.execute(_WATCH_STATEMENTS.format(event=event))
    finally:
        await connection.close()


def _write_trigger(table: str, key: list[str], event: str, names: Mapping[str, str]) -> str:
    """The trigger of one table and event. Raises KeyError for a table that belongs to no layer."""
    transition, rows = _TRANSITIONS[event]
    ignored = ", ".join(f"'{name}'" for name in _IGNORED.get(table, ()))
    differs = f"to_jsonb(t) - ARRAY[{ignored}]::text[] <> to_jsonb(o) - ARRAY[{ignored}]::text[]"
    return _WATCH.format(
        table=table,
        event=event,
        key=key[0],
        name=names[table],
        transition=transition,
        rows=rows.format(primary_key=", ".join(key)),
        which=differs if event == "update" else "true",
        no_line=NO_LINE,
    )
