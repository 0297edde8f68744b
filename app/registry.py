"""Which memory layers there are. A new layer is one package and one line here (`docs/layers.md`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.chats.settings import use_sections
from app.context.in_use import use_layers
from app.diary.layer import LAYER as DIARY
from app.kit.db import use_tables
from app.layers.layer import Layer
from app.memos.layer import LAYER as MEMOS
from app.scenes.layer import LAYER as SCENES
from app.summary.layer import LAYER as SUMMARY

LAYERS: tuple[Layer, ...] = (MEMOS, SUMMARY, DIARY, SCENES)
"""In the order in which an event reaches them, and in which `/docs` shows their routes."""


def _use(layers: Sequence[Layer]) -> None:
    """Have the settings, contexts and copies of lines in this process know these layers."""
    use_sections([layer.settings for layer in layers])
    use_layers(layers)
    use_tables([table for layer in layers for table in layer.tables])


@contextmanager
def registered(*more: Layer) -> Iterator[tuple[Layer, ...]]:
    """Register more layers in this process until the block ends; yields all layers, as `create_app` takes them."""
    layers = (*LAYERS, *more)
    _use(layers)
    try:
        yield layers
    finally:
        _use(LAYERS)


_use(LAYERS)
