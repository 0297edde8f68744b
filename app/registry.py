"""The registry of memory layers. A new layer is one package and one line here (`docs/layers.md`)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from app.bindings.service import CURSOR as BINDINGS
from app.blocks.layer import LAYER as BLOCKS
from app.chats import revision
from app.chats.prompt_cache import CURSOR as PAUSES
from app.chats.settings import BUILT_IN_EDGES, ChatSettings, use_sections
from app.consolidation.layer import LAYER as CONSOLIDATION
from app.context.in_use import use_layers
from app.context.tables import OWN, find_unplaced
from app.diary.layer import LAYER as DIARY
from app.facts.layer import LAYER as FACTS
from app.history.anchor import CURSOR
from app.kit.db import use_tables
from app.knowledge.service import CURSOR as KNOWLEDGE
from app.layers.layer import Layer
from app.memories.layer import LAYER as MEMORIES
from app.memos.layer import LAYER as MEMOS
from app.passages.layer import LAYER as PASSAGES
from app.passages.progress import VECTORS
from app.passages.texts import embed_texts_of
from app.scenes.layer import LAYER as SCENES
from app.search.service import search_layers
from app.search.tools import MEMORY_SEARCH
from app.sessions.layer import LAYER as SESSIONS
from app.summary.layer import LAYER as SUMMARY

LAYERS: tuple[Layer, ...] = (MEMOS, SUMMARY, DIARY, SCENES, SESSIONS, FACTS, BLOCKS, MEMORIES, CONSOLIDATION, PASSAGES)
"""The layers, in the order in which they handle an event and in which `/docs` lists their routes."""


_CURSORS = {CURSOR, BINDINGS, KNOWLEDGE, PAUSES, VECTORS}
_RESERVED = _CURSORS | {revision.MESSAGES, revision.SETTINGS, revision.WORK, revision.LINE}
"""Names that a layer must not have: they are keys of `Head.cursors` or names of changes (`chats.revision`) already."""

RESERVED_TOOLS = {"calls", "discard", MEMORY_SEARCH.name}
"""Names of paths below `…/tools/` that are not tools, or not tools of a layer."""

_ALIAS = re.compile(r"[a-z_][a-z0-9_]{0,59}")
"""A valid SQL identifier without quotes, even with a short prefix."""


def find_faults(layers: Sequence[Layer]) -> list[str]:
    """Return an error message for each reason why these layers cannot be used together. Pure."""
    specs = [spec for layer in layers for spec in layer.segments]
    sections = [layer.settings.section for layer in layers if layer.settings]
    known_as = [name for layer in layers for name in (layer.name, *layer.also_known_as)]
    return [
        *(f"the layer name {name!r} is reserved" for name in known_as if name in _RESERVED),
        *(
            f"the layer name {layer.name!r} is not a valid SQL alias: use at most 60 lower-case letters, digits and _, "
            "and do not begin with a digit"
            for layer in layers
            if not _ALIAS.fullmatch(layer.name)
        ),
        *_find_duplicates("layer", known_as),
        *_find_duplicates("segment", [spec.name for spec in specs]),
        *(f"the segment name {spec.name!r} is reserved" for spec in specs if spec.name in OWN),
        *find_unplaced(specs),
        *_find_duplicates("tool", [tool.name for layer in layers for tool in layer.tools]),
        *(
            f"the tool name {tool.name!r} is reserved"
            for layer in layers
            for tool in layer.tools
            if tool.name in RESERVED_TOOLS
        ),
        *_find_duplicates("prompt", [prompt.name for layer in layers for prompt in layer.prompts]),
        *_find_duplicates("edges", [*BUILT_IN_EDGES, *(layer.edges for layer in layers if layer.edges)]),
        *(
            f"the layer {layer.name!r} changes with {name!r}, which no layer is called"
            for layer in layers
            for name in (*layer.changes_with, *layer.documents_change_with)
            if name not in known_as
        ),
        *_find_duplicates("kind of texts", [kind for layer in layers for kind in layer.document_kinds]),
        *(
            f"the layer {layer.name!r} has texts without a kind"
            for layer in layers
            if layer.documents is not None and not layer.document_kinds
        ),
        *_find_duplicates("settings section", sections),
        *(f"the settings section name {name!r} is reserved" for name in sections if name in ChatSettings.model_fields),
    ]


def _find_duplicates(kind: str, names: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [f"the {kind} name {name!r} is used {count} times" for name, count in seen.items() if count > 1]


def _use(layers: Sequence[Layer]) -> None:
    """Configure the settings, contexts, line copies, searches and vectors of this process for these layers.

    Raises ValueError with the messages of `find_faults`, before anything is changed.
    """
    if faults := find_faults(layers):
        raise ValueError("\n".join(faults))
    use_sections(
        [layer.settings for layer in layers if layer.settings], [layer.edges for layer in layers if layer.edges]
    )
    use_layers(layers)
    search_layers(layers)
    embed_texts_of(layers)
    use_tables([table for layer in layers for table in layer.tables])


@contextmanager
def registered(*more: Layer) -> Iterator[tuple[Layer, ...]]:
    """Register more layers in this process until the block ends, and yield all layers to be given to `create_app`.

    Raises ValueError if they cannot be used together.
    """
    layers = (*LAYERS, *more)
    _use(layers)
    try:
        yield layers
    finally:
        _use(LAYERS)


_use(LAYERS)
