"""What the tests of all layers need to know of scenes."""

from tests.layers.sample import LastAttempt, LayerSample, Stage
from tests.scenes.story import BY_HAND, set_break
from tests.scenes.story import telling as telling_scenes
from tests.talk import append, get, ok, put, talk


async def due_look(stage: Stage) -> None:
    await put(stage.api, settings={"preset": "scenes"})
    stage.model.otherwise = telling_scenes(lambda possible: possible[0])
    await append(stage.api, talk(1, 14))


async def due_scene(stage: Stage) -> None:
    await put(stage.api, settings=BY_HAND)
    stage.model.otherwise = telling_scenes()
    await append(stage.api, talk(1, 8))
    await set_break(stage.api, 4)


async def due_recap(stage: Stage) -> None:
    await due_scene(stage)
    await stage.settle(telling_scenes())
    scene = (await get(stage.api, "/scenes"))["items"][0]
    ok(await stage.api.patch(f"/v1/chats/c/scenes/{scene['id']}", json={"recap": "# Outcomes\n- Kai stayed."}), 200)


SAMPLE = LayerSample(
    last_attempts={
        "detect": LastAttempt("detect", due_look, "UPDATE messages SET excluded = true"),
        "": LastAttempt("%-%-%", due_scene, "UPDATE scenes SET current_hash = '\\x00'"),
        "recap": LastAttempt("recap", due_recap, "UPDATE scenes SET recap = recap || ' Yes.'"),
    },
    jobs_without_draft=frozenset({"hide"}),
)
