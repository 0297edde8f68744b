"""Decides how long the provider is asked to keep a prompt, from the pauses between calls of the model. Pure.

A provider charges more than the usual price of a token to cache it, and much less to read it from the cache. So a cache
saves money only if users answer before it expires, and the best duration depends on how long their pauses are. The
prices are those of Anthropic's prompt caching.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from app.chats.head import Head
from app.chats.settings import EVERY_MESSAGE, ChatSettings, HistorySettings

CacheChoice = Literal["off", "5m", "1h"]

CURSOR = "pauses"
"""The key in `Head.cursors` of `{"seen_s", "open_s"}`: the last pauses, and how long the current pause has lasted."""

MOST_PAUSES = 16
"""The number of pauses that are kept."""

LONGEST_S = 86_400
"""The longest pause that is stored, in seconds; the provider keeps no prompt for so long."""

TTL_S: Mapping[CacheChoice, int] = {"off": 300, "5m": 300, "1h": 3_600}
"""How long the provider keeps a prompt, in seconds. With `off`, the number is only the pause after which an append
counts as cold (`MessagesAppended.cold`)."""

WRITE_PRICE: Mapping[CacheChoice, float] = {"off": 1, "5m": 1.25, "1h": 2}
"""The price of a token that is written to the cache, as a multiple of the price of an input token."""

READ_PRICE = 0.1
"""The price of a token that is read from the cache, as a multiple of the price of an input token."""

_TURN_MESSAGES = 2
"""A turn adds a message of the user and a reply."""

_SCENE_MESSAGES = 8
"""The assumed number of messages between two cuts with `grow_messages: 0`: the typical length of a scene, at whose end
the history is cut. With the edges `every_message`, the number is `_TURN_MESSAGES`."""

_PREFIX_MESSAGES = 3
"""A low estimate of the length of the texts before the history (personas, memories), in messages."""

_FIRST_PAUSES_S = (60, 600, LONGEST_S, LONGEST_S)
"""Assumed pauses, in seconds. They precede the pauses of a chat that has had fewer than `MOST_PAUSES`."""

_LEAST_GAIN = 0.04
"""Prompts are cached only if caching saves more than this share of their price. A smaller saving is too uncertain."""


def choose(pauses_s: Sequence[int], new_share: float) -> CacheChoice:
    """Return the choice with which the prompts after `pauses_s` would have cost least; `5m` if there are no pauses.

    It is `off` if the best other choice saves no more than `_LEAST_GAIN` of the price.
    """
    if not pauses_s:
        return "5m"
    assumed = [*_FIRST_PAUSES_S, *pauses_s][-MOST_PAUSES:]
    costs = {choice: sum([price(choice, pause_s, new_share) for pause_s in assumed]) for choice in WRITE_PRICE}
    costs["off"] *= 1 - _LEAST_GAIN
    return min(costs, key=costs.__getitem__)


def price(choice: CacheChoice, pause_s: int, new_share: float) -> float:
    """Return the cost of a prompt after a pause, as a multiple of the cost of the same prompt without a cache.

    Args:
        choice: The choice with which the former prompt was sent.
        pause_s: The time since the former prompt, in seconds.
        new_share: The share of the prompt, from 0 to 1, that follows the beginning that both prompts have in common.

    """
    if choice == "off":
        return 1
    if pause_s > TTL_S[choice]:
        return WRITE_PRICE[choice]
    return READ_PRICE * (1 - new_share) + WRITE_PRICE[choice] * new_share


def find_new_share(history: HistorySettings) -> float:
    """Return the average share of a prompt that is new: the messages of a turn, or after a cut the whole history."""
    growth = history.grow_messages or (_TURN_MESSAGES if history.edges == EVERY_MESSAGE else _SCENE_MESSAGES)
    cuts_per_turn = min(1, _TURN_MESSAGES / growth)
    new = _TURN_MESSAGES + history.keep_messages * cuts_per_turn
    return new / (_PREFIX_MESSAGES + _TURN_MESSAGES + history.keep_messages + growth / 2)


def choice_in_effect(settings: ChatSettings, pauses_s: Sequence[int]) -> CacheChoice:
    """Return the chat's choice; with `auto`, what `choose` returns for its pauses."""
    return choose(pauses_s, find_new_share(settings.history)) if settings.cache == "auto" else settings.cache


def find_ttl_s(settings: ChatSettings, cursors: Mapping[str, Any]) -> int:
    """Return how long the provider keeps a chat's prompts: `cache_ttl_s` if the chat sets it, else `TTL_S` decides."""
    if "cache_ttl_s" in settings.model_fields_set:
        return settings.cache_ttl_s
    return TTL_S[choice_in_effect(settings, cursors.get(CURSOR, {}).get("seen_s", ()))]


def note_pause(head: Head, silence_s: float, *, ends: bool) -> None:
    """Add the time before an append to the current pause; if the pause `ends`, store it.

    The oldest pauses beyond MOST_PAUSES are dropped.

    A pause is the time between two calls of the model, so it contains the time that the reply took. A pause that rounds
    to 0 seconds is not stored: it comes from an import in several requests, not from a person.
    """
    stored = head.cursors.get(CURSOR, {})
    pause_s = min(stored.get("open_s", 0) + max(0, round(silence_s)), LONGEST_S)
    if pause_s < 1:
        return
    seen_s = stored.get("seen_s", [])
    if ends:
        head.cursors[CURSOR] = {"seen_s": [*seen_s, pause_s][-MOST_PAUSES:]}
    else:
        head.cursors[CURSOR] = {"seen_s": seen_s, "open_s": pause_s}
