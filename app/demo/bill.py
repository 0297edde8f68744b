"""What a provider with a prompt cache would charge for a chat's calls. Pure.

A provider keeps a prompt up to the places that it marks, and finds it again where every byte before such a
place is the same in the next call. The prices are Anthropic's: a token that is found costs a tenth, one that
is put into the cache a quarter more. A pause longer than five minutes finds nothing any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

READ_PRICE = 0.1
WRITE_PRICE = 1.25
CACHE_LIFE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model.

    Attributes:
        blocks: Role and text of each block of the prompt, in order.
        marks: For each marked place, ascending: how many blocks and how many tokens are before it.
        prefix_blocks: How many blocks stand before the history.
        tokens: Of the whole prompt.
        at: When.

    """

    blocks: tuple[tuple[str, str], ...]
    marks: tuple[tuple[int, int], ...]
    prefix_blocks: int
    tokens: int
    at: datetime

    @classmethod
    def of(cls, context: Mapping[str, Any], at: datetime) -> "Call":
        """The call that sends `context`, a context in the `anthropic` format as the service answers it."""
        blocks = [("system", block) for block in context["system"]]
        blocks += [(message["role"], block) for message in context["messages"] for block in message["content"]]
        marked = [count for count, (_, block) in enumerate(blocks, start=1) if "cache_control" in block]
        tokens = [breakpoint["tokens"] for breakpoint in context["breakpoints"]]
        return cls(
            blocks=tuple((role, block["text"]) for role, block in blocks),
            marks=tuple(zip(marked, tokens, strict=True)),
            prefix_blocks=len(context["system"]),
            tokens=context["tokens"],
            at=at,
        )

    def sliding(self) -> "Call":
        """As much in a window that slides: its history begins anew with each call, so only the prefix is marked."""
        return replace(self, marks=tuple(mark for mark in self.marks if mark[0] <= self.prefix_blocks))


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens of some calls, by what is paid for them.

    Attributes:
        read: Found in the cache.
        written: Put into it.
        plain: Neither.

    """

    read: int = 0
    written: int = 0
    plain: int = 0

    @property
    def tokens(self) -> int:
        """All of them: what the same prompts cost without a cache."""
        return self.read + self.written + self.plain

    @property
    def cost(self) -> float:
        """In plain tokens."""
        return READ_PRICE * self.read + WRITE_PRICE * self.written + self.plain

    def add(self, call: Call, former: Call | None) -> "Bill":
        """The bill with `call` on it; `former` is what the cache holds, None if nothing."""
        read = _count_found(call, former) if former else 0
        kept = max(read, call.marks[-1][1] if call.marks else 0)
        return Bill(self.read + read, self.written + kept - read, self.plain + call.tokens - kept)


@dataclass(frozen=True, slots=True)
class Bills:
    """Two ways to send the same calls: as they are, and in a window of the same size that slides."""

    anchored: Bill = Bill()
    sliding: Bill = Bill()

    def add(self, call: Call, former: Call | None) -> "Bills":
        """The bills with `call` on them; `former` is what the cache holds, None if nothing."""
        return Bills(
            self.anchored.add(call, former),
            self.sliding.add(call.sliding(), former.sliding() if former else None),
        )


@dataclass(slots=True)
class Account:
    """The bills of a chat, once as if all calls had come in one go, once with the pauses that it had.

    Attributes:
        calls: How many.
        cold: How many of them came when the cache had forgotten the one before.
        at_once: As if it never forgot.
        with_pauses: As it was.
        last: The newest call.

    """

    calls: int = 0
    cold: int = 0
    at_once: Bills = field(default_factory=Bills)
    with_pauses: Bills = field(default_factory=Bills)
    last: Call | None = None

    def add(self, call: Call) -> None:
        """Charge the next call of the chat."""
        is_cold = self.last is not None and call.at - self.last.at > CACHE_LIFE
        self.at_once = self.at_once.add(call, self.last)
        self.with_pauses = self.with_pauses.add(call, None if is_cold else self.last)
        self.calls += 1
        self.cold += is_cold
        self.last = call


def _count_found(call: Call, former: Call) -> int:
    """The tokens of `call` up to the last place marked in `former` before which the two are the same."""
    pairs = zip(call.blocks, former.blocks, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return max((tokens for blocks, tokens in former.marks if blocks <= same), default=0)
