"""What the tests of all layers need to know of the summary."""

from functools import partial

import httpx

from tests.layers.sample import LastAttempt, LayerSample, RichRows, Stage, refuse
from tests.summary.folds import OWN_FOLDS, counting_fold
from tests.talk import append, ok, put, talk


async def due_summary(stage: Stage) -> None:
    folds = {"summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2}}
    await put(stage.api, settings=OWN_FOLDS | folds | {"history": {"grow_messages": 40, "edges": "folds"}})
    stage.model.otherwise = counting_fold
    await append(stage.api, talk(1, 9))


async def write_summary(api: httpx.AsyncClient) -> None:
    ok(await api.put("/v1/chats/c/summary", json={"text": "They speak of lamps."}), 200)


async def write_versions(api: httpx.AsyncClient) -> None:
    for text in ("They met at sea.", "They met at dusk."):
        ok(await api.put("/v1/chats/c/summary", json={"text": text}), 200)


async def write_version(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """A version to read: regenerating the summary has discarded the former text."""
    written = ok(await api.put(f"{chat}/summary", json={"text": "They met at the lighthouse."}), 200)
    return {"version": written["version"]}


SAMPLE = LayerSample(
    last_attempts={"": LastAttempt("fold", due_summary, "UPDATE messages SET digest = '\\x00'")},
    rich=RichRows(
        settings={"summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2}},
        write_after=write_summary,
        fill=partial(refuse, table="narrative_versions"),
    ),
    wording={"summary/3": "5c9ecea9c80d"},
    examples=frozenset({"Oskar", "Wren"}),
    settings={"summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2}},
    write=write_versions,
    before={"get_summary_version": write_version},
    missing={"/summary/versions": "version_not_found"},
    in_presets={
        "summary.enabled": (False, True, False, False, False, False),
        "summary.threshold_messages": (20, 20, 20, 20, 20, 20),
        "summary.keep_messages": (15, 15, 15, 15, 15, 15),
    },
    golden_settings={
        "no summary": ("diary", {"summary": {"enabled": False}}, {"summary", "instruction"}),
    },
)
