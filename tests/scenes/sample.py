"""What the tests of all layers need to know of scenes."""

from uuid import UUID

import httpx

from app.kit.db import Connection
from tests.layers.sample import LastAttempt, LayerSample, RichRows, Stage, refuse
from tests.scenes.story import BY_HAND, lift_break, set_break
from tests.scenes.story import story_model as scene_model
from tests.talk import append, get, ok, put, talk


async def due_look(stage: Stage) -> None:
    await put(stage.api, settings={"preset": "scenes"})
    stage.model.otherwise = scene_model(lambda possible: possible[0])
    await append(stage.api, talk(1, 14))


async def due_scene(stage: Stage) -> None:
    await put(stage.api, settings=BY_HAND)
    stage.model.otherwise = scene_model()
    await append(stage.api, talk(1, 8))
    await set_break(stage.api, 4)


async def due_recap(stage: Stage) -> None:
    await due_scene(stage)
    await stage.settle(scene_model())
    scene = (await get(stage.api, "/scenes"))["items"][0]
    ok(await stage.api.patch(f"/v1/chats/c/scenes/{scene['id']}", json={"recap": "# Outcomes\n- Kai stayed."}), 200)


async def set_breaks(api: httpx.AsyncClient) -> None:
    for seq in (8, 14, 20):
        await set_break(api, seq)


async def change_scenes(api: httpx.AsyncClient) -> None:
    """Delete a break, edit a scene, and delete a version of the running recap."""
    await lift_break(api, 20)
    scene = (await get(api, "/scenes"))["items"][0]
    wish = {"title": "Ashore", "recap": "# Outcomes\n- Mira came ashore."}
    ok(await api.patch(f"/v1/chats/c/scenes/{scene['id']}", json=wish), 200)
    ok(await api.delete("/v1/chats/c/recap/versions/1"), 204)


async def give_reasons(connection: Connection, chat_key: UUID) -> None:
    """Have the scenes look as if a model had closed them."""
    reason = "reason = 'They leave the island.', closed_by = 'model', truncated = lifted_at IS NOT NULL"
    await connection.execute(f"UPDATE scenes SET {reason} WHERE chat_key = $1", chat_key)
    await refuse(connection, chat_key, "scenes")


async def write_scenes(api: httpx.AsyncClient) -> None:
    """Set breaks, and write the running recap."""
    for seq in (8, 16):
        await set_break(api, seq)
    for text in ("They met at sea.", "They met at dusk."):
        ok(await api.put("/v1/chats/c/recap", json={"text": text}), 200)


SAMPLE = LayerSample(
    last_attempts={
        "detect": LastAttempt("detect", due_look, "UPDATE messages SET excluded = true"),
        "": LastAttempt("%-%-%", due_scene, "UPDATE scenes SET current_hash = '\\x00'"),
        "recap": LastAttempt("recap", due_recap, "UPDATE scenes SET recap = recap || ' Yes.'"),
    },
    jobs_without_draft=frozenset({"hide", "wait"}),
    begins={"scenes": lambda row: row["first_seq"]},
    rich=RichRows(
        settings={"scenes": {"enabled": True, "detect": False, "min_messages": 1, "auto_hide": 1}},
        write_before=set_breaks,
        write_after=change_scenes,
        fill=give_reasons,
    ),
    wording={"scene_break/5": "4cfa308e74bb", "scene_recap/2": "f1e1befc5f10", "recap/2": "861a9c250570"},
    examples=frozenset({"Teo", "Anouk", "Odile"}),
    prompts_without_text=frozenset({"scene_break"}),
    settings={"scenes": {"enabled": True}},
    write=write_scenes,
    path_parameters={"seq": "8"},
    missing={"/scenes": "scene_not_found", "/recap/versions": "version_not_found"},
    in_presets={
        "scenes.enabled": (False, False, True, False, False, False),
        "scenes.auto_hide": (2, 2, 2, 2, 2, 2),
        "scenes.recap.position": ("before_prompt",) * 6,
    },
    golden_settings={
        "recap in the prompt": ("scenes", {"scenes": {"recap": {"position": "in_prompt"}}}, {"recap"}),
        "recap in the chat": ("scenes", {"scenes": {"recap": {"position": "in_chat"}}}, {"recap"}),
        "no recap": ("scenes", {"scenes": {"recap": {"position": "none"}}}, {"recap", "instruction"}),
        "recap without the latest": ("scenes", {"scenes": {"recap": {"exclude_latest": 1}}}, {"recap"}),
        "more is hidden": ("scenes", {"scenes": {"auto_hide": 1}}, {"history"}),
        "nothing is hidden": ("scenes", {"scenes": {"auto_hide": -1}}, set()),
        "no scenes": ("scenes", {"scenes": {"enabled": False}}, {"recap", "instruction"}),
    },
)
