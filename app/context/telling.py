"""What the memory layers put into a context: each is asked about what it has left on the chat's row."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.chats.layers import Layer
from app.chats.settings import ChatSettings
from app.chats.told import Told


def tell_all(
    layers: Sequence[Layer], shown: Mapping[str, Mapping[str, Any]], settings: ChatSettings, character: str | None
) -> list[Told]:
    """What all layers tell, in their order; `shown` is the chat's, by the layer's name."""
    return [told for layer in layers for told in layer.tell(shown.get(layer.NAME, {}), settings, character=character)]
