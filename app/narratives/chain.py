"""The chain of versions behind the current one, and which of them still tell what happened. Pure.

A version is one step folded into the version before, so a step that has gone stale makes all behind it stale; but for
what a person wrote, which stands as it is and is the base of what follows. So a narrative is rebuilt forward from the
newest version that is true, and nothing before that has to be made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Link(NamedTuple):
    """One version, without its text.

    Attributes:
        version: Its number.
        base_version: The version it was folded into; None for the first.
        first_place: Where its own step begins.
        last_place: Where its step ends (inclusive), and with it what the version tells of.
        origin: `model`, `extractive` or `person`.
        own_clean: Whether its own step still says what it was made from.
        deleted: Whether a person deleted it; what was folded onto it may be true all the same.

    """

    version: int
    base_version: int | None
    first_place: int
    last_place: int
    origin: str
    own_clean: bool
    deleted: bool = False

    @property
    def has_step(self) -> bool:
        """Whether it has a step of its own; a person's text that took the place of no version has none."""
        return self.first_place <= self.last_place


@dataclass(frozen=True)
class Chain:
    """A version and those it was built on.

    Attributes:
        links: Oldest first; the last is the current version. The oldest may have a base that is not in here.

    """

    links: Sequence[Link] = ()

    @cached_property
    def _true(self) -> list[bool]:
        true: list[bool] = []
        for link in self.links:
            true.append(link.origin == "person" or (link.own_clean and (not true or true[-1])))
        return true

    def newest_true(self, before: int | None = None, *, by_person: bool = False) -> Link | None:
        """The newest version that is true.

        Args:
            before: Only one that ends before this place.
            by_person: Only one that a person wrote.

        """
        for link, true in zip(reversed(self.links), reversed(self._true), strict=True):
            early = before is None or link.last_place < before
            if true and early and not link.deleted and (not by_person or link.origin == "person"):
                return link
        return None

    @property
    def covered(self) -> int:
        """The last place that the newest true version tells of; 0 without one."""
        link = self.newest_true()
        return link.last_place if link else 0

    def is_stale(self, version: int) -> bool:
        """Whether a version of the chain tells of what is no longer so; a person's too, though it is kept."""
        stale = False
        for link in self.links:
            # What was folded into a person's text knows no more of what was before it.
            stale = not link.own_clean or (stale and not self._follows_person(link))
            if link.version == version:
                return stale
        raise KeyError(version)

    def _follows_person(self, link: Link) -> bool:
        return any(one.version == link.base_version and one.origin == "person" for one in self.links)

    def superseded_by(self, base: Link | None) -> list[int]:
        """The service's versions that a fold into `base` replaces: those behind it that are not true any more."""
        return [
            link.version
            for link, true in zip(self.links, self._true, strict=True)
            if not true and (base is None or link.version > base.version)
        ]
