"""The LC_CTYPE of the embedded databases, which is C.UTF-8 where the C library has it.

With C, `pg_trgm` ignores all letters outside ASCII, and full text search does not separate words at a dash or a
quotation mark outside ASCII. C.UTF-8 knows the letters of all languages. It does not affect the order of texts.
"""

import subprocess
import sys
from typing import Final

CTYPE: Final = "C.UTF-8"

OLD_CTYPES: Final = ("C", "POSIX")

_TRY: Final = "import locale, sys; locale.setlocale(locale.LC_CTYPE, sys.argv[1])"


def available_ctype() -> str | None:
    """Return C.UTF-8, or None if this machine's C library does not have it."""
    return CTYPE if has_locale(CTYPE) else None


def has_locale(name: str) -> bool:
    """Return whether the C library has the locale. Asks in a new process, because `setlocale` would change this one."""
    command = (sys.executable, "-I", "-S", "-c", _TRY, name)
    return subprocess.run(command, cwd="/", env={}, capture_output=True, check=False).returncode == 0
