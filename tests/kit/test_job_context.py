from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.memos.prompts import MEMO
from app.summary.prompts import SUMMARY


def test_a_configured_prompt_replaces_the_built_in_one(database: Database, clock: SteppedClock) -> None:
    ctx = JobContext(database, clock, prompts={"memo": SUMMARY})
    assert MEMO.name == "memo"
    assert ctx.prompt(MEMO) is SUMMARY
    assert ctx.prompt(SUMMARY) is SUMMARY
