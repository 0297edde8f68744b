"""What the tests of all layers need to know of diaries."""

from tests.diary.diaries import KAI, keep_diary, save
from tests.layers.sample import LastAttempt, LayerSample, Stage
from tests.talk import append, edit, talk


async def due_fold(stage: Stage) -> None:
    await keep_diary(stage.api, KAI, lines=2)
    stage.model.otherwise = lambda _request: "I remember the lamps, and the sea."
    await append(stage.api, talk(1, 2))
    for n in range(3):
        await save(stage.api, f"I lit lamp number {n} for Mira tonight.")


async def due_entry(stage: Stage) -> None:
    await keep_diary(stage.api, KAI, auto_write_turns=1)
    stage.model.otherwise = lambda _request: "I told Mira about the lamp, and I meant it."
    await append(stage.api, talk(1, 2))


async def due_stale_entry(stage: Stage) -> None:
    await due_entry(stage)
    await stage.settle(lambda _request: "I told Mira about the lamp, and I meant it.")
    await edit(stage.api, "m1", content="The lamp is out.")


SAMPLE = LayerSample(
    last_attempts={
        "fold:": LastAttempt("fold:%", due_fold, "UPDATE diary_entries SET content = content || ' Yes.'"),
        "write:": LastAttempt("write:%", due_entry, "UPDATE messages SET digest = '\\x00'"),
        "entry:": LastAttempt("entry:%", due_stale_entry, "UPDATE diary_entries SET current_hash = '\\x00'"),
    },
)
