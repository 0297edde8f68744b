"""What the tests of all layers need to know of memos."""

from functools import partial

import httpx

from tests.layers.sample import LastAttempt, LayerSample, RichRows, Stage, refuse
from tests.talk import append, get, ok, talk


async def due_memo(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))


async def change_book(api: httpx.AsyncClient) -> None:
    """Write a memo, edit and pin one, delete one, and have one made again as a person wishes."""
    memos = (await get(api, "/memos"))["items"]
    ok(await api.post("/v1/chats/c/memos", json={"text": "They have met before.", "after_seq": 20}), 201)
    ok(await api.patch(f"/v1/chats/c/memos/{memos[0]['id']}", json={"pinned": True, "text": "Mira came ashore."}), 200)
    ok(await api.delete(f"/v1/chats/c/memos/{memos[1]['id']}"), 204)
    ok(await api.post(f"/v1/chats/c/memos/{memos[2]['id']}/regenerate", json={"instruction": "Name the lamp."}), 202)


async def find_second(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """The second memo: one that a person has edited is not regenerated."""
    return {"memo_id": ok(await api.get(f"{chat}/memos"), 200)["items"][1]["id"]}


SAMPLE = LayerSample(
    last_attempts={"": LastAttempt("%", due_memo, "UPDATE memos SET current_hash = '\\x00'")},
    # A person's memo is placed after a seq.
    begins={"memos": lambda row: row["first_seq"] or (row["sort_key"] - 1) / 2},
    rich=RichRows(write_last=change_book, fill=partial(refuse, table="memos")),
    wording={"memo/3": "ce42dd301e06"},
    examples=frozenset({"Ilse", "Tomas", "Noor", "Dara", "Voss"}),
    before={"regenerate_memo": find_second},
    missing={"/memos": "memo_not_found"},
    in_presets={
        "memos.enabled": (True, False, False, False, False, True),
        "memos.every_messages": (8, 8, 8, 8, 8, 8),
        "memos.window": (15, 15, 15, 15, 15, 15),
        "memos.include_system": (False, False, False, False, False, False),
    },
    golden_settings={
        "fewer memos": ("memo", {"memos": {"window": 5}}, {"memos"}),
        "a budget for memos": ("companion", {"memos": {"budget": {"type": "absolute", "value": 200}}}, {"memos"}),
        "no memos": ("companion", {"memos": {"enabled": False}}, {"memos"}),
    },
)
