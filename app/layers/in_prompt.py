"""What a context of a chat contains of a layer, read from the chat's row: the one meaning of `in_prompt`."""

from collections.abc import Callable, Iterable

from app.chats.models import ChatLine
from app.chats.settings import effective
from app.layers.contribution import Contributed, View


def list_sources(
    contribute: Callable[[View], Contributed],
    chat: ChatLine,
    layer: str,
    *,
    characters: Iterable[str | None] = (None,),
) -> frozenset[str]:
    """Return the sources of the items that a layer contributes to contexts, before a `max_tokens` trims them.

    What exceeds the layer's own budget is not among them. `contribute` gets no `queried`: the items must follow from
    what the layer keeps on the chat's row.

    Args:
        contribute: The layer's.
        chat: The line.
        layer: The layer's name.
        characters: Whose prompts are looked at; None is the prompt of no character in particular.

    """
    cached, settings = chat.context_cache.get(layer, {}), effective(chat.settings)
    contributed = [contribute(View(cached, None, settings, character)) for character in characters]
    segments = [segment for one in contributed for segment in one.segments]
    return frozenset(source for segment in segments for item in segment.items for source in item.sources)
