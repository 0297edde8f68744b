"""The descriptor of the index of words and of vectors."""

from app.layers.layer import Layer
from app.passages.handlers import (
    erase_owner,
    on_append,
    on_change,
    on_fork,
    on_line_replaced,
    on_texts_changed,
    on_truncate,
)
from app.passages.job import INDEX_MESSAGES
from app.passages.models import Passage, PassageVector, TextVector
from app.passages.progress import NAME
from app.passages.texts import COMPARE_ALL, EMBED_TEXTS
from app.passages.vectors import EMBED_MESSAGES

LAYER = Layer(
    name=NAME,
    settings=None,
    models=(Passage, PassageVector, TextVector),
    jobs=(INDEX_MESSAGES, EMBED_MESSAGES, EMBED_TEXTS, COMPARE_ALL),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_fork=on_fork,
    on_line_replaced=on_line_replaced,
    on_texts_changed=on_texts_changed,
    erase_owner=erase_owner,
)
