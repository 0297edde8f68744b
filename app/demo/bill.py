"""The cost of a chat's calls at a provider with a prompt cache. Pure.

The provider caches a prompt up to each marked position. The next call reads it from the cache if every byte before such
a position is the same. The prices are Anthropic's: a token that is read from the cache costs a tenth of a normal one. A
token that is written to it costs a quarter more than a normal one if the cache expires after five minutes without a
call, and twice as much if it expires after an hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from app.chats.prompt_cache import READ_PRICE, TTL_S, WRITE_PRICE, CacheChoice


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model.

    Attributes:
        blocks: Role and text of each block of the prompt, in order.
        marks: The number of blocks and of tokens before each marked position, ascending.
        prefix_blocks: The number of blocks before the history.
        tokens: The tokens of the whole prompt.
        at: The time of the call.
        cache: How long the provider is asked to keep the prompt.

    """

    blocks: tuple[tuple[str, str], ...]
    marks: tuple[tuple[int, int], ...]
    prefix_blocks: int
    tokens: int
    at: datetime
    cache: CacheChoice = "5m"

    @classmethod
    def of(cls, context: Mapping[str, Any], at: datetime) -> "Call":
        """Return the call that sends `context`, a context in the `anthropic` format as the service returns it."""
        blocks = [("system", block) for block in context["system"]]
        blocks += [(message["role"], block) for message in context["messages"] for block in message["content"]]
        marked = [count for count, (_, block) in enumerate(blocks, start=1) if "cache_control" in block]
        controls = [block["cache_control"] for _, block in blocks if "cache_control" in block]
        tokens = [breakpoint["tokens"] for breakpoint in context["breakpoints"]]
        return cls(
            blocks=tuple((role, block["text"]) for role, block in blocks),
            marks=tuple(zip(marked, tokens, strict=True)),
            prefix_blocks=len(context["system"]),
            tokens=context["tokens"],
            at=at,
            cache="off" if not controls else controls[0].get("ttl", "5m"),
        )

    @property
    def expires_at(self) -> datetime:
        """The time from which the provider no longer has the prompt, unless another call reads it."""
        return self.at + timedelta(seconds=TTL_S[self.cache])

    def sliding(self) -> "Call":
        """Return this call as a client with a sliding window would send it: with no marks after the prefix.

        Such a client moves the start of the history forward in each call, so the provider can read only what is before
        the history from its cache.
        """
        return replace(self, marks=tuple(mark for mark in self.marks if mark[0] <= self.prefix_blocks))


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens of a number of calls, by price.

    Attributes:
        read: Tokens that were read from the cache.
        written: Tokens that were written to it for five minutes.
        written_1h: Tokens that were written to it for an hour.
        plain: All other tokens.

    """

    read: int = 0
    written: int = 0
    written_1h: int = 0
    plain: int = 0

    @property
    def tokens(self) -> int:
        """The total number of tokens, which is also the cost of the same prompts without a cache."""
        return self.read + self.written + self.written_1h + self.plain

    @property
    def cost(self) -> float:
        """The cost, in tokens at the normal price."""
        written = WRITE_PRICE["5m"] * self.written + WRITE_PRICE["1h"] * self.written_1h
        return READ_PRICE * self.read + written + self.plain

    def plus(self, other: "Bill") -> "Bill":
        """Return the bill of the calls of both bills."""
        return Bill(
            self.read + other.read,
            self.written + other.written,
            self.written_1h + other.written_1h,
            self.plain + other.plain,
        )

    def add(self, call: Call, former: Call | None) -> "Bill":
        """Return the bill with `call` added. `former` is the previous call if its prompt is still cached, or None."""
        read = _count_found(call, former) if former else 0
        kept = max(read, call.marks[-1][1] if call.marks else 0)
        short, long = (0, kept - read) if call.cache == "1h" else (kept - read, 0)
        return Bill(self.read + read, self.written + short, self.written_1h + long, self.plain + call.tokens - kept)


@dataclass(frozen=True, slots=True)
class Bills:
    """The bills of two ways to send the same calls: as they are, and with a sliding window of the same size."""

    anchored: Bill = Bill()
    sliding: Bill = Bill()

    def add(self, call: Call, former: Call | None) -> "Bills":
        """Return the bills with `call` added. `former` is the previous call if its prompt is still cached, or None."""
        return Bills(
            self.anchored.add(call, former),
            self.sliding.add(call.sliding(), former.sliding() if former else None),
        )


@dataclass(slots=True)
class Account:
    """The bills of a chat, with and without the pauses between its calls.

    Attributes:
        calls: The number of calls.
        cold: The number of calls for which the cache had expired.
        at_once: The bills for a cache that never expires.
        with_pauses: The bills with the pauses that the chat had.
        last: The newest call.

    """

    calls: int = 0
    cold: int = 0
    at_once: Bills = field(default_factory=Bills)
    with_pauses: Bills = field(default_factory=Bills)
    last: Call | None = None

    def add(self, call: Call) -> None:
        """Add the next call of the chat."""
        is_cold = self.last is not None and call.at > self.last.expires_at
        self.at_once = self.at_once.add(call, self.last)
        self.with_pauses = self.with_pauses.add(call, None if is_cold else self.last)
        self.calls += 1
        self.cold += is_cold
        self.last = call


def _count_found(call: Call, former: Call) -> int:
    """Return the tokens that `call` reads from the cache after `former`.

    Both calls are the same up to a certain block. The result is the number of tokens before the last position in this
    common part that is marked in `former`.
    """
    pairs = zip(call.blocks, former.blocks, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return max((tokens for blocks, tokens in former.marks if blocks <= same), default=0)
