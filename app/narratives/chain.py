"""The chain of versions that the current version was built on, and which of them are valid. Pure.

A narrative is a text that grows: the summary, the running recap, or the folded part of a diary. Each version folds one
*step*, a range of new material, into the text of its *base* version. Material is counted in *units*: seqs of messages,
or numbers of diary entries. A step is stale if its material has changed since it was folded. A stale step invalidates
its version and the versions built on it, up to the next version that a person wrote. A person's version is always
valid, and so are the versions folded onto it while their own steps are not stale. A narrative is rebuilt from its
latest valid version; earlier versions are not made again.

A *kept text* is a text that a person wrote as a part of a version. Folds do not change it. Later versions contain it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Link(NamedTuple):
    """One version, without its text.

    Attributes:
        version: Its number.
        base_version: The version that its step was folded into; None for the first.
        first_unit: The first unit of its own step: a message seq, or the number of a diary entry.
        last_unit: The last unit of its own step (inclusive), which is also the last unit that the version covers.
        origin: `model`, `extractive` or `person`.
        is_fresh: Whether the material of its own step is unchanged.
        deleted: Whether it is soft-deleted: a person deleted it, or a person wrote it and it was replaced
            (`service.discard_replaced`). Versions folded onto it can still be valid.
        has_kept: Whether it has a kept text.

    """

    version: int
    base_version: int | None
    first_unit: int
    last_unit: int
    origin: str
    is_fresh: bool
    deleted: bool = False
    has_kept: bool = False

    @property
    def has_step(self) -> bool:
        """Whether it has a step of its own. A person's text that replaced no version has none."""
        return self.first_unit <= self.last_unit

    @property
    def is_kept(self) -> bool:
        """Whether it is the version in which a person wrote the kept text; its own `text` is then empty."""
        return self.has_kept and self.origin == "person"


@dataclass(frozen=True)
class Chain:
    """A version and the versions it was built on.

    Attributes:
        links: The versions, oldest first; the last is the version itself. The base of the oldest may be missing.

    """

    links: Sequence[Link] = ()

    @cached_property
    def _valid(self) -> list[bool]:
        valid: list[bool] = []
        for link in self.links:
            valid.append(link.origin == "person" or (link.is_fresh and (not valid or valid[-1])))
        return valid

    def latest_valid(self, before: int | None = None, *, by_person: bool = False) -> Link | None:
        """Return the latest valid version that is not deleted, or None.

        Args:
            before: Consider only versions that end before this unit.
            by_person: Consider only versions that a person wrote.

        """
        return next((link for link in self._newest_valid(by_person) if before is None or link.last_unit < before), None)

    def find_valid(self, version: int) -> Link | None:
        """Return a version of the chain. None if it is not in the chain, was deleted, or is not valid."""
        return next((link for link in self._newest_valid() if link.version == version), None)

    def latest_usable(self, before: int, *, by_person: bool = False) -> Link | None:
        """Return the latest valid version that a context may contain if the history begins at `before`, or None.

        Contexts may contain a version that ends before the history. If a person wrote a kept text in a version,
        contexts may contain this version at once.
        """
        links = self._newest_valid(by_person)
        return next((link for link in links if link.last_unit < before or link.is_kept), None)

    def without_kept(self) -> "Chain":
        """Return the chain up to its latest valid version without a kept text, or an empty chain if there is none."""
        base = next((link for link in self._newest_valid() if not link.has_kept), None)
        return Chain([link for link in self.links if base and link.version <= base.version])

    def _newest_valid(self, by_person: bool = False) -> Iterator[Link]:
        """Yield the valid versions that are not deleted, newest first."""
        for link, valid in zip(reversed(self.links), reversed(self._valid), strict=True):
            if valid and not link.deleted and (not by_person or link.origin == "person"):
                yield link

    @property
    def covered(self) -> int:
        """The last unit that the latest valid version covers; 0 if there is no valid version."""
        link = self.latest_valid()
        return link.last_unit if link else 0

    def is_stale(self, version: int) -> bool:
        """Return whether a version covers material that has changed. A person's version can be stale, but stays valid.

        If a version was folded onto a person's version, directly or indirectly, only the steps after the person's
        version count. Raises KeyError for a version that is not in the chain.
        """
        stale = False
        for link in self.links:
            # A version folded onto a person's version does not depend on earlier steps.
            stale = not link.is_fresh or (stale and not self._follows_person(link))
            if link.version == version:
                return stale
        raise KeyError(version)

    def _follows_person(self, link: Link) -> bool:
        return any(one.version == link.base_version and one.origin == "person" for one in self.links)

    def superseded_by(self, base: Link | None) -> list[int]:
        """Return the versions that a fold into `base` replaces: those after `base` that are no longer valid."""
        return [
            link.version
            for link, valid in zip(self.links, self._valid, strict=True)
            if not valid and (base is None or link.version > base.version)
        ]
