"""What the tests of all layers need to know of memos."""

from tests.layers.sample import LastAttempt, LayerSample, Stage
from tests.talk import append, talk


async def due_memo(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))


SAMPLE = LayerSample(
    last_attempts={"": LastAttempt("%", due_memo, "UPDATE memos SET current_hash = '\\x00'")},
)
