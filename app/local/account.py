"""Who PostgreSQL runs as: it refuses to run as root.

Root's PostgreSQL runs as the user who owns its files, else `postgres`, else `nobody`. Where that user cannot
reach them (DATA or the programs lie below somebody's private home), it runs in a user namespace: there it
sees itself as that user, while to the system it is still root and reaches all that root owns.
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
    """Who a child runs as.

    Attributes:
        kind: `self` is this process's user; `user` is another one; `namespace` is this process's user, who in
            a namespace of its own goes by `uid` and `gid`.
        uid: What the child takes for its user id.
        gid: What the child takes for its group id.

    """

    kind: Literal["self", "user", "namespace"]
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.uid}:{self.gid}"

    def take(self, path: Path) -> None:
        """Give `path`, which this process made, to the account."""
        if self.kind == "user":
            os.chown(path, self.uid, self.gid)


def own_account() -> Account:
    """The user of this process."""
    return Account("self", os.geteuid(), os.getegid())


def owner_of(path: Path) -> int | None:
    """The user id that owns `path`, or None if there is no such path."""
    return path.stat().st_uid if path.exists() else None


def choose_account(files: Path, needs: Sequence[Path]) -> Account:
    """Who runs the PostgreSQL whose files are (or will be) `files`.

    Args:
        files: Its data directory; need not exist yet.
        needs: Existing directories that it has to enter.

    Raises LocalError with one line that names what is in the way.
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
    """Who could run the PostgreSQL whose files belong to `owner` (None: there are none yet), best first.

    Raises LocalError if it is nobody whom `me` can be.
    """
    if me.uid != 0:
        if owner not in (None, me.uid):
            raise LocalError(f"PostgreSQL's files belong to {_name_of(owner)}: start as that user")
        return (me,)
    if owner:
        return (Account("user", owner, _group_of(owner)),)
    entry = _candidate()
    outside, inside = (Account(kind, entry.pw_uid, entry.pw_gid) for kind in ("user", "namespace"))
    # Files that belong to root were made in a namespace, and only there they can be used.
    return (outside, inside) if owner is None else (inside,)


def obstacle(account: Account, needs: Sequence[Path]) -> str | None:
    """What keeps `account` from entering all of `needs`, as the end of a sentence; None if nothing does.

    Asked of the system as that user, so that access lists count as well as modes.
    """
    ways = dict.fromkeys(way for need in needs for way in (*reversed(need.parents), need))
    script = 'for way; do [ -x "$way" ] || { printf %s "$way"; exit; }; done'
    command = (*launcher(account, 0), "/bin/sh", "-c", script, "sh", *map(str, ways))
    answer = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    name = _name_of(account.uid if account.kind == "user" else os.geteuid())
    if answer.returncode != 0:
        wish = f"become {name}" if account.kind == "user" else "have a user namespace"
        return f"it cannot {wish} ({answer.stderr.strip()})"
    return f"{name} may not enter {answer.stdout}" if answer.stdout else None


def launcher(account: Account, death_signal: int) -> tuple[str, ...]:
    """The beginning of a command line that runs the rest of it as `account`."""
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
    except KeyError:  # files from another machine: a number without a name will do
        return uid


def _name_of(uid: int | None) -> str:
    """As people know the user."""
    try:
        return f"the user {pwd.getpwuid(uid or 0).pw_name}"
    except KeyError:
        return f"the user with the id {uid}"
