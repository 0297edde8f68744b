"""The key of a fact as tools and consolidation store it, so that a fact has one name. Pure.

Models call the same fact `user_birthday`, `Birthday` or `birthday`. A person's key is stored as it was sent.
"""

import re
import unicodedata
from collections.abc import Collection

MAX_KEY_CHARS = 100

_NOT_IN_KEY = re.compile(r"[\W_]+")
_OF_USER = re.compile(r"^(?:user_(?:s_)?)+")


def normalise_key(key: str) -> str | None:
    """Return `key` in lower case with underscores between its words, or None if it has no letter or digit.

    Letters of every script are kept: `Favourite colour` becomes `favourite_colour`. `user_` at the beginning is left
    out, because most facts are about the user. At most 100 characters.
    """
    words = _NOT_IN_KEY.sub("_", unicodedata.normalize("NFKC", key).lower()).strip("_")
    return _OF_USER.sub("", words)[:MAX_KEY_CHARS].rstrip("_") or None


def choose_key(given: str, known: Collection[str]) -> str:
    """Return the key for a fact that a model or a rule calls `given`.

    It is the known key with the same normalised form, such as one that a person has set, or else the normalised key. A
    key without a letter or digit stays as it is.
    """
    key = normalise_key(given)
    if given in known or key is None:
        return given
    if key in known:
        return key
    return next((one for one in sorted(known) if normalise_key(one) == key), key)
