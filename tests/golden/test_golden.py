"""The golden story: 200 messages of five weeks, played with each preset, and the resulting contexts.

`tests/golden/<preset>.txt` is the context at the end of the story, and `diary-138.txt` the one in the night when
the clocks go back. Read them by eye whenever they change.
`TESTS_GOLDEN=write pytest tests/golden/test_golden.py` writes them instead of comparing them.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

import pytest

from app.chats.presets import PRESETS
from app.local.running import Urls
from tests.golden.script import FOLDER, Json, read_story
from tests.golden.stage import Stage, open_stage
from tests.layers.samples import SAMPLES

END = 200
NIGHT = 138
"""The last message of the night in which there is one hour twice."""

SETTINGS: dict[str, tuple[str, Json, set[str]]] = {
    "timestamps on": ("memo", {"timestamps": "inline"}, {"instruction", "pinned", "history", "newest"}),
    "timestamps off": ("diary", {"timestamps": "off"}, {"instruction", "pinned", "history", "newest"}),
    "the time": ("companion", {"time": True}, {"time"}),
    "another instruction": ("diary", {"instruction": "Remember what you know of Jonas."}, {"instruction"}),
}
"""A preset, what one chat of two has set otherwise, and the segments that differ by it."""

SETTINGS |= {name: case for sample in SAMPLES.values() for name, case in sample.golden_settings.items()}


class Played(NamedTuple):
    """A stage after the story, and what was written down on the way."""

    stage: Stage
    sheets: dict[int, str]


Play = Callable[[str], Awaitable[Played]]


@pytest.fixture(scope="module")
async def play(servers: Urls, template: str) -> AsyncIterator[Play]:
    """Plays the story in a preset, once for all tests that ask for it."""
    story = read_story()
    found: dict[str, Played] = {}
    async with AsyncExitStack() as opened:

        async def played(preset: str) -> Played:
            if preset not in found:
                stage = await opened.enter_async_context(open_stage(servers, template, story))
                found[preset] = Played(stage, await stage.play(story, preset, (NIGHT, END)))
            return found[preset]

        yield played


@pytest.mark.parametrize(("preset", "number"), [*((preset, END) for preset in PRESETS), ("diary", NIGHT)])
async def test_memories_of_a_five_week_story_match_the_golden_files(play: Play, preset: str, number: int) -> None:
    sheet = (await play(preset)).sheets[number]
    golden = FOLDER / (f"{preset}.txt" if number == END else f"{preset}-{number}.txt")
    if os.environ.get("TESTS_GOLDEN") == "write":
        golden.write_text(sheet, encoding="utf-8")
    assert sheet == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("preset", "setting", "segments"), SETTINGS.values(), ids=SETTINGS)
async def test_a_chats_setting_changes_only_its_part_of_that_chat(
    play: Play, preset: str, setting: Json, segments: set[str]
) -> None:
    stage = (await play(preset)).stage
    twin = await stage.fork(preset)
    before = await stage.context(preset)
    assert _without_ids(await stage.context(twin)) == _without_ids(before)

    await stage.set(twin, setting)
    after = await stage.context(twin)

    assert await stage.context(preset) == before
    assert _without(after, segments) == _without(before, segments)
    assert all(_find(after, name) != _find(before, name) for name in segments)


def _without_ids(context: Json) -> Json:
    """What is said to the model and of it, whichever chat it is."""
    return {name: value for name, value in context.items() if name not in ("chat_id", "line")}


def _without(context: Json, names: set[str]) -> list[Json]:
    """The other segments, in order. Whether one can be cached is left out: what changes before it decides on that."""
    others = (segment for segment in context["segments"] if segment["name"] not in names)
    return [{name: value for name, value in segment.items() if name != "cacheable"} for segment in others]


def _find(context: Json, name: str) -> tuple[int, Json] | None:
    """A segment with its place among all, if it is there."""
    return next((found for found in enumerate(context["segments"]) if found[1]["name"] == name), None)
