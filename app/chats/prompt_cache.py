"""Decides how long the provider is asked to keep a prompt, from the pauses between calls of the model. Pure.

A provider charges more than a token's price to store a prompt, and much less to read it again while it is stored. So
storing it saves money only for users who answer in time, and how long to store it depends on how long they take. The
prices are those of Anthropic's prompt caching.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from app.chats.head import Head
from app.chats.settings import ChatSettings

CacheChoice = Literal["off", "5m", "1h"]

CURSOR = "pauses"
"""The key in the head's cursors of `{"seen_s", "open_s"}`: the last pauses, and how long the current one lasts."""

MOST_PAUSES = 16
"""The number of pauses that are kept."""

LONGEST_S = 86_400
"""The longest pause that is stored, in seconds; the provider keeps no prompt for so long."""

TTL_S: Mapping[CacheChoice, int] = {"off": 300, "5m": 300, "1h": 3_600}
"""How long the provider keeps a prompt, in seconds. With `off`, pauses count as with `5m`."""

_WRITE_PRICE: Mapping[CacheChoice, float] = {"off": 1, "5m": 1.25, "1h": 2}
"""The price of a token that is stored, in prices of an input token."""

_READ_PRICE = 0.1
"""The price of a token that is read from the cache."""

_NEW_SHARE = 0.06
"""The share of a prompt that is new in each turn: two messages of about 34."""


def choose(pauses_s: Sequence[int]) -> CacheChoice:
    """Return the choice with which the prompts after `pauses_s` would have cost least; `5m` if there are none."""
    if not pauses_s:
        return "5m"
    return min(_WRITE_PRICE, key=lambda choice: sum([price(choice, pause_s) for pause_s in pauses_s]))


def price(choice: CacheChoice, pause_s: int) -> float:
    """Return what a prompt costs after a pause, in prices of the same prompt without a cache."""
    if choice == "off":
        return 1
    if pause_s > TTL_S[choice]:
        return _WRITE_PRICE[choice]
    return _READ_PRICE * (1 - _NEW_SHARE) + _WRITE_PRICE[choice] * _NEW_SHARE


def choice_in_effect(settings: ChatSettings, pauses_s: Sequence[int]) -> CacheChoice:
    """Return the chat's choice; with `auto`, the choice that would have cost least with its pauses."""
    return choose(pauses_s) if settings.cache == "auto" else settings.cache


def find_ttl_s(head: Head) -> int:
    """Return how long the provider keeps a chat's prompts: `cache_ttl_s` if the chat sets it, else by the choice."""
    settings = head.settings
    if "cache_ttl_s" in settings.model_fields_set:
        return settings.cache_ttl_s
    return TTL_S[choice_in_effect(settings, head.cursors.get(CURSOR, {}).get("seen_s", ()))]


def note_pause(head: Head, silence_s: float, *, ends: bool) -> None:
    """Add the time before an append to the current pause; if the pause `ends`, store it.

    The oldest pauses beyond MOST_PAUSES are dropped.

    A pause is the time between two calls of the model, so it contains the time that the reply took. Less than a second
    is not a pause of a person, but an import in several requests.
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
