"""Lists which texts of a layer, such as memos, a chat's contexts contain. The API's field `in_prompt` uses it."""

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
    queried: str | None = None,
) -> frozenset[str]:
    """Return the sources of the items that a layer contributes to contexts, before `max_tokens` trims any.

    Items that exceed the layer's own budget are not included. Without `queried`, the items must depend only on the data
    that the layer stores on the line's row.

    Args:
        contribute: The layer's `contribute`.
        chat: The line.
        layer: The layer's name.
        characters: The characters whose prompts are considered; None is a prompt without a known character.
        queried: What the layer's `context_query` returns.

    """
    cached, settings = chat.context_cache.get(layer, {}), effective(chat.settings)
    contributed = [contribute(View(cached, queried, settings, character)) for character in characters]
    segments = [segment for one in contributed for segment in one.segments]
    return frozenset(source for segment in segments for item in segment.items for source in item.sources)
