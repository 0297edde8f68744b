"""Token counts in o200k, offline.

The count of a long text is remembered by its digest, so a character card that goes into every
context is counted once. The digest stands for the text: a cache of counts must not keep people's words.
"""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from rs_bpe import bpe
from rs_bpe.bpe import openai

from app.kit.tables import give_back_tables

MESSAGE_OVERHEAD_TOKENS = 4
"""What a message costs beyond its text: role and delimiters."""

_SHORT_CHARS = 64
_REMEMBERED = 20_000

_o200k = openai.o200k_base()
_o200k.count("")  # builds what it needs, if it has not yet
give_back_tables(bpe.__file__)
_counts: OrderedDict[bytes, int] = OrderedDict()
_counts_lock = Lock()


def count_tokens(text: str) -> int:
    """The number of o200k tokens of `text`, in any thread. Raises UnicodeEncodeError on lone surrogates."""
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
