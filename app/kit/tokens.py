"""Token counts in o200k, computed offline.

Counts of long texts are cached, so that a character card that is part of every context is counted once. The cache is
keyed by digests, so it does not hold the texts of users.
"""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from rs_bpe import bpe
from rs_bpe.bpe import openai

from app.kit.tables import give_back_tables

MESSAGE_OVERHEAD_TOKENS = 4
"""The tokens of a message beyond its text: role and delimiters."""

_SHORT_CHARS = 64
_REMEMBERED = 20_000

_o200k = openai.o200k_base()
_o200k.count("")  # makes the library build its structures
give_back_tables(bpe.__file__)
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
