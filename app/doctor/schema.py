"""The check of the schema: whether the migrations of this version have run."""

from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError

from app.doctor.finding import Finding
from app.kit.db import Connection
from app.migrate import SCRIPTS


async def check_schema(connection: Connection) -> Finding:
    """Compare the revision of the database with the newest migration of this version."""
    if not await connection.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL"):
        return Finding("schema", "fault", "The database is not migrated.", "Run memobook migrate.")
    return judge_revision(await connection.fetchval("SELECT version_num FROM alembic_version"))


def judge_revision(revision: str | None) -> Finding:
    """Return the finding for a database at `revision`, which is None if the database has no revision."""
    scripts = ScriptDirectory(str(SCRIPTS))
    newest = scripts.get_current_head()
    if revision == newest:
        return Finding("schema", "ok", f"The schema is at the newest revision, {newest}.")
    if revision is None or _is_known(scripts, revision):
        return Finding(
            "schema",
            "fault",
            f"The schema is at revision {revision or 'none'}; this version needs {newest}.",
            "Back up the database, then run memobook migrate.",
        )
    return Finding(
        "schema",
        "note",
        f"The schema is of another version: revision {revision}.",
        "If the schema is newer, update this installation to the version that runs elsewhere.",
    )


def _is_known(scripts: ScriptDirectory, revision: str) -> bool:
    try:
        return scripts.get_revision(revision) is not None
    except CommandError:
        return False
