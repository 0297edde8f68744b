"""Identifies the language of a text with py3langid, offline.

The library and its model take a second and about 120 MB, so they are loaded for the first answer that is judged; a
process that only serves requests never loads them.
"""

import importlib
from functools import cache
from threading import Lock
from typing import Any

MIN_CONFIDENCE = 0.8
_MOST_CHARS = 4_000

_loading = Lock()


def identify(text: str) -> str | None:
    """Return the ISO 639 code of the language of `text`, or None if that is uncertain. Takes under a millisecond."""
    with _loading:
        identifier = _load()
    language, confidence = identifier.classify(text[:_MOST_CHARS])
    return str(language) if confidence >= MIN_CONFIDENCE else None


@cache
def _load() -> Any:
    library = importlib.import_module("py3langid.langid")
    return library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True)
