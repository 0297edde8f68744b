"""The runner of jobs: what it makes of work whose source another transaction changes meanwhile."""

from typing import ClassVar

import pytest

from app.chats.settings import LayerSettings
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database, DbSession
from app.kit.job_context import JobContext
from app.kit.owners import Owner
from app.kit.work_queue import Claimed, NewWork
from app.layers.job import Job, Made
from app.layers.layer import Layer
from app.layers.runner import run_job
from tests.revisions import read_scope

NOTES = "notes"


class NoteSettings(LayerSettings):
    """Notes."""

    section: ClassVar[str] = NOTES


class Notebook:
    """A source that is empty until another transaction writes it, just after a job has read it."""

    def __init__(self) -> None:
        self.written_in_between = ""
        self.source = ""
        self.saved: list[str] = []

    def layer(self) -> Layer:
        """The layer with the job that saves the source."""
        return Layer(
            name=NOTES, settings=NoteSettings, jobs=(Job(read=self._read, draft=self._draft, save=self._save),)
        )

    async def _read(self, _ctx: JobContext, _db_session: DbSession, _claimed: Claimed) -> str | None:
        found, self.source = self.source, self.source or self.written_in_between
        return found or None

    async def _draft(self, _ctx: JobContext, _claimed: Claimed, source: str) -> str:
        return source.upper()

    async def _save(self, _db_session: DbSession, made: Made[str, str]) -> None:
        self.saved.append(made.draft)


async def run_once(database: Database, clock: SteppedClock, layer: Layer, owner: Owner) -> int:
    """Run what is ripe; return how many items were claimed."""
    async with database.unit_of_work() as db_session:
        claims = await work_queue.claim(db_session, owner, limit=10, now=clock())
    for claimed in claims:
        await run_job(JobContext(database, clock), [layer], claimed)
    return len(claims)


async def test_work_without_a_source_is_completed(database: Database, clock: SteppedClock, tenant: str) -> None:
    notebook, owner = Notebook(), Owner.of_tenant(tenant)
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, NOTES, [NewWork("n")], now=clock(), settle_s=0)
    assert await run_once(database, clock, notebook.layer(), owner) == 1
    async with database.unit_of_work() as db_session:
        assert await work_queue.find_work(db_session, owner, NOTES, "n") is None


async def test_a_source_that_appears_meanwhile_is_made(database: Database, clock: SteppedClock, tenant: str) -> None:
    notebook, owner = Notebook(), Owner.of_tenant(tenant)
    notebook.written_in_between = "the lamp is lit"
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, NOTES, [NewWork("n")], now=clock(), settle_s=0)
    await run_once(database, clock, notebook.layer(), owner)
    clock.step(work_queue.RETRY_DELAYS_S[0])
    assert await run_once(database, clock, notebook.layer(), owner) == 1
    assert notebook.saved == ["THE LAMP IS LIT"]


@pytest.mark.parametrize("user_id", ["mira", None])
async def test_an_outcome_raises_the_revision_of_the_user_or_tenant(
    database: Database, clock: SteppedClock, tenant: str, user_id: str | None
) -> None:
    notebook = Notebook()
    owner = Owner.of_user(tenant, user_id) if user_id else Owner.of_tenant(tenant)
    notebook.written_in_between = "the lamp is lit"
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, NOTES, [NewWork("n")], now=clock(), settle_s=0)
    assert await read_scope(database, owner) is None, "work that is due changes nothing yet"
    await run_once(database, clock, notebook.layer(), owner)
    failed = await read_scope(database, owner)
    assert failed is not None
    clock.step(work_queue.RETRY_DELAYS_S[0])
    await run_once(database, clock, notebook.layer(), owner)
    assert await read_scope(database, owner) == failed + 1


async def test_work_of_an_unknown_layer_is_left_to_others(database: Database, clock: SteppedClock, tenant: str) -> None:
    book, owner = Notebook(), Owner.of_tenant(tenant)
    book.source = "a note"
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, NOTES, [NewWork("1", 0)], now=clock(), settle_s=0)
    async with database.unit_of_work() as db_session:
        (claimed,) = await work_queue.claim(db_session, owner, limit=10, now=clock())
    await run_job(JobContext(database, clock), [], claimed)
    async with database.unit_of_work() as db_session:
        item = await work_queue.find_work(db_session, owner, NOTES, "1")
    assert item is not None
    assert (item.attempts, item.error, item.failed_at) == (0, None, None)
    clock.step(1)
    assert await run_once(database, clock, book.layer(), owner) == 1
    assert book.saved == ["A NOTE"]
