"""Choice of the user that PostgreSQL runs as, because PostgreSQL refuses to run as root.

A process that is not root starts PostgreSQL as its own user. A process that is root starts it as the owner of the
existing data files. If there are none, it uses the user `postgres`, or `nobody` if there is no user `postgres`. This
user may be unable to reach DATA (the data directory of the embedded stack) or the programs, for example if they are
below a private home directory. Then PostgreSQL runs in a user namespace: there its user id is the id of that user, but
the system still treats it as root, so it can access root's files. The data files that it creates there belong to root.
If existing data files belong to root, PostgreSQL always runs in a user namespace.
"""

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.local import launch
from app.local.errors import LocalError

_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """The account that a child process runs as.

    Attributes:
        kind: `self` is this process's user; `user` is another user; `namespace` is this process's user, mapped to `uid`
            and `gid` in a user namespace.
        uid: The user id that the child process sees.
        gid: The group id that the child process sees.

    """

    kind: Literal["self", "user", "namespace"]
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.uid}:{self.gid}"

    def take(self, path: Path) -> None:
        """Make the account the owner of `path`, which this process has created."""
        if self.kind == "user":
            os.chown(path, self.uid, self.gid)


def own_account() -> Account:
    """Return the account of this process."""
    return Account("self", os.geteuid(), os.getegid())


def owner_of(path: Path) -> int | None:
    """Return the user id of the owner of `path`, or None if the path does not exist."""
    return path.stat().st_uid if path.exists() else None


def choose_account(files: Path, needs: Sequence[Path]) -> Account:
    """Return the account that runs the PostgreSQL with the data directory `files`.

    Args:
        files: The data directory of PostgreSQL; need not exist yet.
        needs: Existing directories that it must be able to enter.

    Raises LocalError with one line that names the obstacle.
    """
    me = own_account()
    reasons = []
    for account in accounts(me, owner_of(files)):
        reason = None if account == me else obstacle(account, needs)
        if reason is None:
            return account
        reasons.append(reason)
    raise LocalError(f"PostgreSQL does not run as root, and {reasons[0]}")


def accounts(me: Account, owner: int | None) -> tuple[Account, ...]:
    """Return the accounts that can run the PostgreSQL whose files belong to `owner`, best first.

    `owner` is None if there are no files yet. Raises LocalError if `me` cannot become the owner.
    """
    if me.uid != 0:
        if owner not in (None, me.uid):
            raise LocalError(f"PostgreSQL's files belong to {_name_of(owner)}: run this command as that user")
        return (me,)
    if owner:
        return (Account("user", owner, _group_of(owner)),)
    entry = _candidate()
    outside, inside = (Account(kind, entry.pw_uid, entry.pw_gid) for kind in ("user", "namespace"))
    # Files that belong to root were created in a namespace and can only be used in one.
    return (outside, inside) if owner is None else (inside,)


def obstacle(account: Account, needs: Sequence[Path]) -> str | None:
    """Return why `account` cannot enter all of `needs`, as the end of a sentence, or None if it can.

    The check runs as that account, so access control lists are considered as well as modes.
    """
    ways = dict.fromkeys(way for need in needs for way in (*reversed(need.parents), need))
    script = 'for way; do [ -x "$way" ] || { printf %s "$way"; exit; }; done'
    command = (*launcher(account, 0), "/bin/sh", "-c", script, "sh", *map(str, ways))
    answer = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    name = _name_of(account.uid if account.kind == "user" else os.geteuid())
    if answer.returncode != 0:
        wish = f"become {name}" if account.kind == "user" else "create a user namespace"
        return f"this process cannot {wish} ({answer.stderr.strip()})"
    return f"{name} may not enter {answer.stdout}" if answer.stdout else None


def launcher(account: Account, death_signal: int) -> tuple[str, ...]:
    """Return the first part of a command line that runs the rest of it as `account`."""
    return (sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(death_signal), str(account))


def _candidate() -> pwd.struct_passwd:
    for name in _CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LocalError(f"PostgreSQL does not run as root, and there is no user {' or '.join(_CANDIDATES)}")


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:  # files from another machine: the user has no entry here
        return uid


def _name_of(uid: int | None) -> str:
    """Return a description of the user for messages."""
    try:
        return f"the user {pwd.getpwuid(uid or 0).pw_name}"
    except KeyError:
        return f"the user with the id {uid}"
