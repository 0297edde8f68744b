"""The descriptor of the index of words."""

from app.layers.layer import Layer
from app.passages.handlers import on_append, on_change, on_truncate
from app.passages.job import INDEX_MESSAGES
from app.passages.models import Passage
from app.passages.progress import NAME

LAYER = Layer(
    name=NAME,
    settings=None,
    models=(Passage,),
    jobs=(INDEX_MESSAGES,),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
)
