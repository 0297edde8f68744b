"""What the tests of all layers need to know of the summary."""

from tests.layers.sample import LastAttempt, LayerSample, Stage
from tests.summary.folds import OWN_FOLDS, counting_fold
from tests.talk import append, put, talk


async def due_summary(stage: Stage) -> None:
    folds = {"summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2}}
    await put(stage.api, settings=OWN_FOLDS | folds | {"history": {"grow_messages": 40, "edges": "folds"}})
    stage.model.otherwise = counting_fold
    await append(stage.api, talk(1, 9))


SAMPLE = LayerSample(
    last_attempts={"": LastAttempt("fold", due_summary, "UPDATE messages SET digest = '\\x00'")},
)
