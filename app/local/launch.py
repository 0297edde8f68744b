"""The last step before a child: a program of its own that becomes the child.

    python -I -S launch.py PARENT SIGNAL KIND:UID:GID PROGRAM [ARGUMENT …]

The child gets SIGNAL when its parent dies, however that dies (on Linux; elsewhere the next start ends what
was left over). The kernel has to be asked after the change of user, which drops the wish, and a process that
may have threads runs no Python between fork and exec: hence a program. It has only the standard library.
"""

import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


def main(parent: str, death_signal: str, who: str, *command: str) -> None:
    """Become `command` as `who`. Returns never; SystemExit with one line if it cannot be."""
    kind, uid, gid = who.split(":")
    try:
        if kind == "user":
            os.setgroups([])
            os.setgid(int(gid))
            os.setuid(int(uid))
        elif kind == "namespace":
            _enter_namespace(int(uid), int(gid))
        if sys.platform.startswith("linux"):
            _call("prctl", _PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != int(parent):  # it died before it could be watched
            sys.exit("the parent is gone")
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error}")


def _enter_namespace(uid: int, gid: int) -> None:
    """Go by `uid` and `gid` from here on, in a user namespace in which nobody else exists."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWUSER)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")  # the kernel wants it before a gid_map
    (own / "uid_map").write_text(f"{uid} {outer_uid} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{gid} {outer_gid} 1", encoding="ascii")


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, function) or getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
