"""Work that failed because of the model server is made as soon as the server answers again."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, get, talk


@pytest.mark.parametrize(("status", "revived"), [(401, True), (402, True), (403, True), (404, True), (400, False)])
async def test_a_key_that_is_mended_revives_failed_work(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    status: int,
    revived: bool,
) -> None:
    await append(api, talk(1, 8))
    answer, model.otherwise = model.otherwise, refuses(status)
    for _ in range(work_queue.MAX_ATTEMPTS):
        clock.step(3_600)
        await dispatcher.drain()
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 1}
    model.otherwise = answer
    await append(api, talk(9, 16))
    clock.step(60)
    await dispatcher.drain()
    first, second = sorted((await get(api, "/memos"))["items"], key=lambda memo: memo["first_seq"])
    assert second["status"] == "ready"
    assert (first["status"] == "ready") is revived
