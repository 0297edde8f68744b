"""A small program that changes the user, registers a death signal, and then executes a child's program.

    python -I -S launch.py PARENT SIGNAL KIND:UID:GID PROGRAM [ARGUMENT …]

On Linux the child receives SIGNAL when its parent dies for any reason; on other systems the next start ends leftover
children. The signal must be registered after the change of user, which resets it. A process with threads must not run
Python between fork and exec, so this is a separate program. It only uses the standard library.
"""

import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


def main(parent: str, death_signal: str, who: str, *command: str) -> None:
    """Execute `command` as the account `who` in place of this process. Raises SystemExit with one line on failure."""
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
        if os.getppid() != int(parent):  # it died before the signal was registered
            sys.exit("the parent process has ended")
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error}")


def _enter_namespace(uid: int, gid: int) -> None:
    """Enter a new user namespace in which this process has `uid` and `gid` and no other user is mapped."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWUSER)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")  # the kernel requires it before a gid_map
    (own / "uid_map").write_text(f"{uid} {outer_uid} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{gid} {outer_gid} 1", encoding="ascii")


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, function) or getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
