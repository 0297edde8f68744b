"""Migrations expand, then contract: the processes of a release work with the schema of the next one.

The judge of migrations is given migrations that it must accept and others that it must refuse; then it judges ours.
"""

import tomllib
from types import ModuleType

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.migrate import SCRIPTS
from tests.schema.expansions import Judge, judge_releases, split

FIRST = "0.2.0"
"""The first release whose successor has to work beside it."""

ADD_KIND = 'op.add_column("memos", sa.Column("kind", sa.String(), nullable=True))'

ACCEPTED = {
    "a table": 'op.create_table("t", sa.Column("id", sa.Uuid(), nullable=False), sa.PrimaryKeyConstraint("id"))',
    "a table, a unique index and a rule of it": """
op.create_table("t", sa.Column("id", sa.Uuid(), nullable=False))
op.create_index("uq_t", "t", ["id"], unique=True)
op.create_check_constraint("ck_t_id", "t", "id IS NOT NULL")
op.drop_column("t", "id")
op.drop_table("t")""",
    "a column that may be null": ADD_KIND,
    "a column with a default": 'op.add_column("t", sa.Column("n", sa.Integer(), server_default="0", nullable=False))',
    "a column with words in its default": """op.execute("ALTER TABLE t ADD n text NOT NULL DEFAULT 'check; unique'")""",
    "an index": 'op.create_index("ix_t_n", "t", ["n"])',
    "an index that may exist": 'op.execute("CREATE INDEX IF NOT EXISTS ix_t_n ON t (n) WHERE n > 0")',
    "a rule about a new column": f"""{ADD_KIND}
op.create_check_constraint("ck_memos_kind", "memos", "kind IN ('one', 'other')")""",
    "a rule that is widened": """
op.drop_constraint("ck_memos_origin", "memos")
op.create_check_constraint("ck_memos_origin", "memos", "origin IN ('model', 'tool')")
""",
    "a column that may become null": 'op.alter_column("t", "n", nullable=True)',
    "rows": "op.execute(\"UPDATE t SET n = 1; INSERT INTO t VALUES ('drop table t'); SELECT 1 FROM t FOR UPDATE\")",
    "statistics and storage": 'op.execute("ALTER TABLE t ALTER COLUMN n SET STATISTICS 0, SET (fillfactor = 70)")',
    "a block that calls a function": 'op.execute("DO $$ BEGIN PERFORM clear(); END $$")',
    "a comment": "op.execute(\"/* DROP TABLE t */ COMMENT ON TABLE t IS 'DROP TABLE t' -- DROP TABLE t\")",
}

REBUILDS = ("uq_t_n",)

REBUILT = """
op.drop_index("uq_t_n", table_name="t")
op.create_index("uq_t_n", "t", ["n"], unique=True, postgresql_where=sa.text("n IS NOT NULL"))"""

WIDENS = {"a rule that is widened": ("ck_memos_origin",)}

REFUSED = {
    "a dropped table": 'op.drop_table("memos")',
    "a dropped column": 'op.drop_column("memos", "text")',
    "a dropped index": 'op.drop_index("uq_memos_batch", table_name="memos")',
    "a dropped key": 'op.drop_constraint("pk_memos", "memos", type_="primary")',
    "a renamed table": 'op.rename_table("memos", "notes")',
    "a renamed column": 'op.alter_column("memos", "text", new_column_name="content")',
    "another type": 'op.alter_column("memos", "number", type_=sa.BigInteger())',
    "a column that may no longer be null": 'op.alter_column("memos", "model", nullable=False)',
    "a column without a default": 'op.add_column("memos", sa.Column("n", sa.Integer(), nullable=False))',
    "a column that lost its default": 'op.alter_column("memos", "text", server_default=None)',
    "a unique column": 'op.execute("ALTER TABLE memos ADD COLUMN n int UNIQUE")',
    "a unique index": 'op.create_index("uq_memos_n", "memos", ["number"], unique=True)',
    "a unique constraint": 'op.create_unique_constraint("uq_memos_n", "memos", ["number"])',
    "a foreign key": 'op.create_foreign_key(None, "memos", "chats", ["chat_key"], ["chat_key"])',
    "a table that refers to an old one": 'op.execute("CREATE TABLE t (id int REFERENCES chats)")',
    "a rule about an old column": 'op.create_check_constraint("ck_memos_n", "memos", "number > 0")',
    "a rule about an old and a new column": f"""{ADD_KIND}
op.create_check_constraint("ck_memos_kind", "memos", "kind <> origin")""",
    "a rule that is not validated": 'op.execute("ALTER TABLE memos ADD CONSTRAINT c CHECK (number > 0) NOT VALID")',
    "a rule that is replaced": """
op.drop_constraint("ck_memos_status", "memos")
op.create_check_constraint("ck_memos_status", "memos", "status = 'ready'")""",
    "a second action": 'op.execute("ALTER TABLE memos ADD COLUMN n numeric(3, 1), DROP COLUMN text")',
    "a second statement": 'op.execute("SELECT 1; DROP TABLE memos")',
    "a statement after a comment": 'op.execute("-- only a look\\nDROP TABLE memos")',
    "quoted names": 'op.execute(\'ALTER TABLE "memos" DROP "text"\')',
    "rows that are deleted": 'op.execute("DELETE FROM memos")',
    "rows that are deleted in a query": 'op.execute("WITH gone AS (DELETE FROM memos RETURNING 1) SELECT 1")',
    "a truncated table": 'op.execute("TRUNCATE memos")',
    "a block that drops": 'op.execute("DO $$ BEGIN DROP TABLE memos; END $$")',
    "a block that executes a text": "op.execute(\"DO $$ BEGIN EXECUTE 'DR' || 'OP TABLE memos'; END $$\")",
    "a trigger": 'op.execute("CREATE TRIGGER t BEFORE INSERT ON memos EXECUTE FUNCTION refuse()")',
    "a renamed constraint": 'op.execute("ALTER TABLE memos RENAME CONSTRAINT a TO b")',
    "a step after an accepted one": f'{ADD_KIND}\nop.drop_column("memos", "text")',
}


def migration(upgrade: str, **constants: object) -> ModuleType:
    """Return a migration with the body of its `upgrade`."""
    lines = "\n".join(f"    {line}" for line in upgrade.strip().splitlines())
    module = ModuleType("a_migration")
    source = f"import sqlalchemy as sa\nfrom alembic import op\n\ndef upgrade():\n{lines}\n"
    exec(compile(source, "a_migration", "exec"), module.__dict__)
    vars(module).update(constants)
    return module


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_expansion_is_accepted(name: str) -> None:
    module = migration(ACCEPTED[name], widens=WIDENS.get(name, ()))
    assert Judge().list_faults(module, ["0.2.0"]) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_contraction_is_refused(name: str) -> None:
    faults = Judge().list_faults(migration(REFUSED[name]), ["0.2.0"])
    assert len(faults) == 1
    assert faults[0].startswith("contracts: ")


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_accepted_a_release_after_the_last_use(name: str) -> None:
    module = migration(REFUSED[name], unused_since="0.3.0")
    assert Judge().list_faults(module, ["0.2.0", "0.3.0"]) == []
    assert Judge().list_faults(module, ["0.2.0"]) == [
        "`unused_since` names 0.3.0, which is not a release before this one"
    ]


def test_a_unique_index_may_be_rebuilt() -> None:
    assert Judge().list_faults(migration(REBUILT, rebuilds=REBUILDS), ["0.2.0"]) == []
    assert len(Judge().list_faults(migration(REBUILT), ["0.2.0"])) == 2


@pytest.mark.parametrize(
    "upgrade",
    [
        'op.drop_index("uq_t_n", table_name="t")',
        """
op.drop_index("uq_t_n", table_name="t")
op.create_index("uq_t_n", "t", ["n"], unique=True, postgresql_where=sa.text("n > 0"))""",
        """
op.create_index("uq_t_n", "t", ["n"], unique=True)
op.drop_index("uq_t_n", table_name="t")""",
        f"""{REBUILT}
op.create_index("uq_t_n", "t", ["n"], unique=True)""",
        f"""{REBUILT}
op.create_index("uq_t_m", "t", ["m"], unique=True)""",
    ],
    ids=["not created again", "of some rows", "dropped last", "created twice", "another one"],
)
def test_an_index_that_is_not_rebuilt_is_refused(upgrade: str) -> None:
    assert Judge().list_faults(migration(upgrade, rebuilds=REBUILDS), ["0.2.0"]) != []


def test_constants_that_describe_nothing_are_refused() -> None:
    module = migration(ADD_KIND, unused_since="0.2.0", widens=["ck_memos_kind"], rebuilds=REBUILDS)
    assert Judge().list_faults(module, ["0.2.0"]) == [
        "`widens` names ck_memos_kind, which is not dropped",
        "`rebuilds` names uq_t_n, which is not dropped",
        "`unused_since` is set, but nothing is contracted",
    ]


def test_a_migration_that_reads_is_refused() -> None:
    (fault,) = Judge().list_faults(migration('op.get_bind().scalar(sa.text("SELECT 1"))'), ["0.2.0"])
    assert fault.startswith("needs a database")


def test_migrations_belong_to_the_release_that_ships_them() -> None:
    drop = REFUSED["a dropped column"]
    chain = [
        ("a", migration(drop)),  # before the first release that is judged
        ("b", migration('op.create_table("t", sa.Column("n", sa.Integer()))')),
        ("c", migration('op.drop_column("t", "n")')),  # the release before does not know the table
        ("d", migration('op.drop_column("t", "n")')),  # now it does
        ("e", migration(drop, unused_since="0.2.0")),
        ("f", migration(drop, unused_since="0.3.0")),
        ("g", migration(drop, unused_since="0.3.0")),
    ]
    heads = {"0.2.0": "a", "0.3.0": "c", "0.4.0": "f"}
    assert set(judge_releases(chain, heads, "0.2.0")) == {"d"}
    assert set(judge_releases(chain, heads | {"0.3.0": "f", "0.4.0": "g"}, "0.2.0")) == {"f"}
    assert set(judge_releases(chain, {"0.2.0": "a"}, "0.2.0")) == {"f", "g"}
    with pytest.raises(ValueError, match="order"):
        judge_releases(chain, {"0.3.0": "c", "0.2.0": "a"}, "0.2.0")
    with pytest.raises(ValueError, match="order"):
        judge_releases(chain, heads, "0.1.0")


def test_texts_and_comments_are_no_statements() -> None:
    assert split("SELECT 'a;b''; DROP' -- ; DROP\n; /* ; */ UPDATE \"T\" SET x = 1;") == [
        "select ''",
        "update t set x = 1",
    ]


def _ours() -> list[tuple[str, ModuleType]]:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    found = [(one.revision, one.module) for one in ScriptDirectory.from_config(config).walk_revisions()]
    return list(reversed(found))


def test_our_migrations_expand_or_name_the_release_before() -> None:
    heads = tomllib.loads((SCRIPTS / "releases.toml").read_text(encoding="utf-8"))
    faults = judge_releases(_ours(), heads, FIRST)
    assert faults == {}


def test_the_renames_before_the_first_release_would_be_refused() -> None:
    faults = {revision: Judge().list_faults(module, []) for revision, module in _ours()}
    refused = {revision for revision, found in faults.items() if found}
    accepted = faults.keys() - refused
    assert {"e3a75c1f9d42", "c9d4b1725ef0", "a3c6f0e81b27", "b41c7e92d6f0"} <= accepted
    assert len(refused) >= 5
