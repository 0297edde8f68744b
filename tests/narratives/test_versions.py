"""The versions of a narrative in the database, against a plain list that obeys the same rules."""

from dataclasses import dataclass
from random import Random
from uuid import UUID, uuid4

import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database, DbSession
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import FoldDraft, Narrative, VersionNotFound

STORY = Narrative("summary")


@dataclass
class Told:
    """A version, as the plain list has it."""

    version: int
    base: int | None
    first: int
    last: int
    person: bool
    clean: bool = True
    deleted: bool = False
    kept: str = ""


class IdleConnections:
    """The plain list: every version there is, and which is current."""

    def __init__(self) -> None:
        self.told: dict[int, Told] = {}
        self.current: int | None = None
        self.newest = 0

    def is_valid(self, version: int | None) -> bool:
        if version not in self.told:
            return True
        one = self.told[version]
        return one.person or (one.clean and self.is_valid(one.base))

    def latest_valid(self, before: int | None = None, *, usable: bool = False) -> Told | None:
        at = self.current
        while at in self.told:
            one = self.told[at]
            early = before is None or one.last < before or (usable and one.person and one.kept != "")
            if self.is_valid(at) and not one.deleted and early:
                return one
            at = one.base
        return None

    def chain(self) -> list[int]:
        found, at = [], self.current
        while at in self.told:
            found.append(at)
            at = self.told[at].base
        return found

    def drop_superseded(self, base: Told | None) -> None:
        gone = {v for v in self.chain() if not self.is_valid(v) and (base is None or v > base.version)}
        while True:
            more = {one.version for one in self.told.values() if one.base in gone and not one.person} - gone
            if not more:
                break
            gone |= more
        for version in gone:
            del self.told[version]

    def add(self, one: Told) -> None:
        self.newest += 1
        self.told[one.version] = one
        self.current = one.version


class Walk:
    """Does the same to both, and compares them."""

    def __init__(self, db_session: DbSession, clock: SteppedClock, random: Random) -> None:
        self._db, self._clock, self._random = db_session, clock, random
        self._line = (uuid4(), uuid4())
        self._idle = IdleConnections()

    async def step(self) -> None:
        ways = (self.fold, self.write, self.change, self.mend, self.delete, self.choose, self.reset, self.cut)
        await self._random.choice((self.fold, self.fold, *ways))()

    async def fold(self) -> None:
        base = self._idle.latest_valid()
        first = base.last + 1 if base else 1
        last = first + self._random.randrange(4)
        chain = await narratives.read_chain(self._db, self._line, STORY)
        number = await narratives.save_fold(
            self._db,
            self._line,
            STORY,
            FoldDraft(f"up to {last}", "model"),
            base=chain.latest_valid(),
            first_unit=first,
            last_unit=last,
            begins_seq=first,
            source_hash=b"as it was",
            filters=None,
            now=self._clock(),
        )
        self._idle.drop_superseded(base)
        kept = base.kept if base else ""
        self._idle.add(Told(number, base.version if base else None, first, last, person=False, kept=kept))

    async def write(self) -> None:
        former = self._idle.latest_valid()
        text, keep = f"mine {self._idle.newest}", self._random.random() < 0.5
        number = await narratives.write_version(
            self._db, self._line, STORY, text, keep=keep, begins_seq=0, now=self._clock()
        )
        self._idle.drop_superseded(former)
        base, first, last = (former.base, former.first, former.last) if former else (None, 1, 0)
        # It has the range and the hash of the version that it replaced.
        clean, kept = former.clean if former else True, text if keep else ""
        self._idle.add(Told(number, base, first, last, person=True, clean=clean, kept=kept))

    async def change(self) -> None:
        await self._say(b"something else", clean=False)

    async def mend(self) -> None:
        await self._say(b"as it was", clean=True)

    async def _say(self, says: bytes, *, clean: bool) -> None:
        if not self._idle.told:
            return
        at = self._random.choice(list(self._idle.told.values()))
        if at.first > at.last or at.person:
            return
        await narratives.update_hashes(self._db, self._line, STORY.layer, [("", at.version, says)])
        at.clean = clean

    async def delete(self) -> None:
        listed = [one for one in self._idle.told.values() if not one.deleted]
        if not listed:
            return
        gone = self._random.choice(listed)
        await narratives.delete_version(self._db, self._line, STORY, gone.version, now=self._clock())
        gone.deleted, gone.kept = True, ""
        if self._idle.current == gone.version:
            left = [one.version for one in self._idle.told.values() if not one.deleted]
            self._idle.current = max(left, default=None)

    async def choose(self) -> None:
        listed = [one for one in self._idle.told.values() if not one.deleted]
        if listed:
            chosen = self._random.choice(listed).version
            await narratives.make_current(self._db, self._line, STORY, chosen)
            self._idle.current = chosen

    async def reset(self) -> None:
        await narratives.reset_current(self._db, self._line, STORY)
        self._idle.current = None

    async def cut(self) -> None:
        places = [one.last for one in self._idle.told.values()]
        place = self._random.randint(1, max(places, default=0) + 1)
        await narratives.truncate(self._db, self._line, STORY, place, begins_seq=0)
        kept = self._idle.told
        left = [v for v in self._idle.chain() if not kept[v].deleted and (kept[v].last < place or kept[v].person)]
        for one in list(kept.values()):
            if one.last >= place and (not one.person or one.deleted):
                del kept[one.version]
            elif one.last >= place:
                one.clean = one.clean and one.first > one.last
                one.first, one.last = min(one.first, place), place - 1
        listed = [one.version for one in kept.values() if not one.deleted]
        if self._idle.current is not None:
            self._idle.current = left[0] if left else max(listed, default=None)

    async def check(self) -> None:
        for before in (None, self._random.randint(1, 40)):
            chain = await narratives.read_chain(
                self._db, self._line, STORY, **({"from_unit": before} if before else {})
            )
            assert _named(chain.latest_valid(before)) == _named_reference(self._idle.latest_valid(before))
            if before is not None:
                usable = chain.latest_usable(before)
                assert _named(usable) == _named_reference(self._idle.latest_valid(before, usable=True))
        page = await narratives.list_versions(self._db, self._line, STORY, shown=None, before=None, limit=500)
        listed = sorted((one for one in self._idle.told.values() if not one.deleted), key=lambda one: -one.version)
        assert [one.version for one, _, _ in page] == [one.version for one in listed]
        assert [one.kept_text for one, _, _ in page] == [one.kept for one in listed]
        assert [one.version for one, _, _ in page if one.current] == [v for v in [self._idle.current] if v is not None]
        for one, stale, _ in page:
            if one.origin != "person":
                assert stale is not self._idle.is_valid(one.version)


def _named(link: Link | None) -> tuple[int, int, int] | None:
    return None if link is None else (link.version, link.first_unit, link.last_unit)


def _named_reference(one: Told | None) -> tuple[int, int, int] | None:
    return None if one is None else (one.version, one.first, one.last)


@pytest.mark.parametrize("seed", range(24))
async def test_the_latest_valid_version_is_always_the_same(database: Database, clock: SteppedClock, seed: int) -> None:
    async with database.unit_of_work() as db_session:
        walk = Walk(db_session, clock, Random(seed))
        for _ in range(60):
            await walk.step()
            await walk.check()


async def test_a_deleted_version_is_unknown_and_its_number_not_reused(database: Database, clock: SteppedClock) -> None:
    line: tuple[UUID, UUID] = (uuid4(), uuid4())
    async with database.unit_of_work() as db_session:
        first = await narratives.write_version(db_session, line, STORY, "mine", begins_seq=0, now=clock())
        await narratives.delete_version(db_session, line, STORY, first, now=clock())
        with pytest.raises(VersionNotFound):
            await narratives.read_version(db_session, line, STORY, first)
        with pytest.raises(VersionNotFound):
            await narratives.make_current(db_session, line, STORY, first)
        assert await narratives.write_version(db_session, line, STORY, "again", begins_seq=0, now=clock()) > first


async def test_a_stale_personal_text_reads_no_more_of_the_chain(database: Database, clock: SteppedClock) -> None:
    line: tuple[UUID, UUID] = (uuid4(), uuid4())

    async def fold(db_session: DbSession, first: int) -> None:
        chain = await narratives.read_chain(db_session, line, STORY)
        await narratives.save_fold(
            db_session,
            line,
            STORY,
            FoldDraft("told", "model"),
            base=chain.latest_valid(),
            first_unit=first,
            last_unit=first + 5,
            begins_seq=first,
            source_hash=b"as it was",
            filters=None,
            now=clock(),
        )

    async with database.unit_of_work() as db_session:
        await fold(db_session, 1)
        await narratives.write_version(db_session, line, STORY, "mine", begins_seq=0, now=clock())
        await narratives.truncate(db_session, line, STORY, 4, begins_seq=3)
        assert (await narratives.read_chain(db_session, line, STORY)).is_stale(2)
        for first in range(4, 64, 6):
            await fold(db_session, first)
        assert len((await narratives.read_chain(db_session, line, STORY)).links) == 1
