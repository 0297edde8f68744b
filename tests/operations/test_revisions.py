"""The list of former schema revisions, read from the files alone, equals Alembic's."""

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from app.migrate import SCRIPTS
from app.operations.revisions import MIGRATIONS, read_followed


def test_a_revision_with_a_successor_is_outdated(tmp_path: Path) -> None:
    for name, former in (
        ("a", "down_revision = None"),
        ("b", 'down_revision: str | None = "a"'),
        ("c", "down_revision = 'a'"),
        ("d", 'down_revision: tuple[str, ...] = ("b", "c")'),
    ):
        (tmp_path / f"{name}.py").write_text(f'"""What it does."""\n\nrevision = {name!r}\n{former}\n')
    assert read_followed(tmp_path) == {"a", "b", "c"}


def test_all_migrations_but_the_newest_are_outdated() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    every = {script.revision for script in scripts.walk_revisions()}
    assert read_followed(MIGRATIONS) == every - set(scripts.get_heads())
