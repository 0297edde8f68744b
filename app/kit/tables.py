"""Releases the memory of the tokenizer's vocabulary tables after they have been read.

The library stores its vocabularies in its shared object, builds its own structures from them once and never reads them
again, but 33 MB of file pages stay resident in every process. The pages are read-only and backed by the file, so
releasing them is safe: a page that is accessed again is read from the file.
"""

import ctypes
import sys
from pathlib import Path

_MADV_DONTNEED = 4
_WORTH_BYTES = 1_000_000


def give_back_tables(shared_object: str) -> None:
    """Release the large read-only mappings of the file `shared_object`. Does nothing on systems other than Linux."""
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
