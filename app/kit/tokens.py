"""Token counts in o200k, an encoding of OpenAI's models, computed offline.

Counts of long texts are cached, so that a character card that is part of every context is counted once. The cache is
keyed by digests, so it does not hold the texts of users.
"""

import ctypes
import sys
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from threading import Lock

from rs_bpe import bpe
from rs_bpe.bpe import openai

_MADV_DONTNEED = 4
_WORTH_BYTES = 1_000_000


def release_tables(shared_object: str) -> None:
    """Release the memory of the large read-only mappings of the file `shared_object`.

    Call it when the library has built its own structures from the tables in this memory, and no longer needs the
    tables. If they are used all the same, the kernel reads them from the file again. Does nothing on systems other than
    Linux.
    """
    maps = Path("/proc/self/maps")
    if sys.platform != "linux" or not maps.exists():
        return
    libc = ctypes.CDLL(None)
    for line in maps.read_text(encoding="utf-8", errors="replace").splitlines():
        addresses, mode, *_, path = line.split(maxsplit=5)
        if path != shared_object or mode != "r--p":
            continue
        first, last = (int(address, 16) for address in addresses.split("-"))
        if last - first >= _WORTH_BYTES:
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_DONTNEED)


MESSAGE_OVERHEAD_TOKENS = 4
"""The tokens of a message beyond its text: role and delimiters."""

_SHORT_CHARS = 64
_REMEMBERED = 20_000

_o200k = openai.o200k_base()
_o200k.count("")  # makes the library build its structures
release_tables(bpe.__file__)
_counts: OrderedDict[bytes, int] = OrderedDict()
_counts_lock = Lock()


def count_tokens(text: str) -> int:
    """Return the number of o200k tokens of `text`. Thread-safe. Raises UnicodeEncodeError on lone surrogates."""
    if len(text) <= _SHORT_CHARS:
        return int(_o200k.count(text))
    digest = sha256(text.encode()).digest()
    with _counts_lock:
        known = _counts.get(digest)
        if known is not None:
            _counts.move_to_end(digest)
            return known
    counted = int(_o200k.count(text))
    with _counts_lock:
        _counts[digest] = counted
        if len(_counts) > _REMEMBERED:
            _counts.popitem(last=False)
    return counted
