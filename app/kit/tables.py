"""Gives back the memory of the tokenizer's tables once they have been read.

The library carries its vocabularies in the shared object, builds its own structures from them and never looks at
them again, yet 33 MB of file pages stay mapped in every process. They are read-only and backed by the file, so
letting go of them changes nothing: whoever touches one gets it from the file again.
"""

import ctypes
import sys
from pathlib import Path

_MADV_DONTNEED = 4
_WORTH_BYTES = 1_000_000


def give_back_tables(shared_object: str) -> None:
    """Let go of the large read-only mappings of `shared_object` (its path). On Linux; elsewhere nothing happens."""
    maps = Path("/proc/self/maps")
    if sys.platform != "linux" or not maps.exists():
        return
    libc = ctypes.CDLL(None)
    for line in maps.read_text(encoding="utf-8", errors="replace").splitlines():
        place, mode, *_, path = line.split(maxsplit=5)
        if path != shared_object or mode != "r--p":
            continue
        first, last = (int(address, 16) for address in place.split("-"))
        if last - first >= _WORTH_BYTES:
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED)
