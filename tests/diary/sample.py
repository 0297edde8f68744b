"""What the tests of all layers need to know of diaries."""

from uuid import UUID

import httpx

from app.kit.db import Connection
from tests.diary.diaries import KAI, change, discard, entries, keep_diary, save, write
from tests.layers.sample import LastAttempt, LayerSample, RichRows, Stage
from tests.talk import append, edit, ok, put, talk


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


async def write_entries(api: httpx.AsyncClient) -> None:
    for lamp in ("green", "red", "blue"):
        await write(api, f"A {lamp} lamp.")
    await save(api, "A white lamp.")


async def change_entries(api: httpx.AsyncClient) -> None:
    """Edit the last entry and delete the one before it."""
    *_, deleted, edited = await entries(api)
    await change(api, edited["id"], "A lamp of my own.")
    await discard(api, deleted["id"])


async def write_for_replies(api: httpx.AsyncClient) -> None:
    """Entries that wait for a reply, one that a person keeps, and one whose reply says something else."""
    await save(api, "A lamp to come.", message_id="to-come")
    await save(api, "Another light.", message_id="m36", swipe="next")
    await save(api, "A lamp that stays.", message_id="m38")
    await save(api, "A lamp that goes out.", message_id="m36")
    kept = next(entry for entry in await entries(api) if entry["content"] == "A lamp that stays.")
    ok(await api.patch(f"/v1/chats/c/diary/{kept['id']}", json={"kept": True}), 200)


async def await_the_user(connection: Connection, chat_key: UUID) -> None:
    """The open calls as if the message that their reply answers were to come, too."""
    await connection.execute("UPDATE bindings SET awaits_user = true WHERE chat_key = $1 AND is_open", chat_key)


async def write_two(api: httpx.AsyncClient) -> None:
    for content in ("She came back.", "She stayed."):
        await write(api, content)


async def outgrow(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """Write more lines into the diary of the examples' character than are shown."""
    await put(api, chat.rpartition("/")[2], status=200, settings={"diary": {"enabled": True, "lines": 1}})
    for content in ("She came back.", "She stayed."):
        ok(await api.post(f"{chat}/diary", json={"character": KAI["name"], "content": content}), 201)
    return {}


SAMPLE = LayerSample(
    last_attempts={
        "fold:": LastAttempt("fold:%", due_fold, "UPDATE diary_entries SET content = content || ' Yes.'"),
        "write:": LastAttempt("write:%", due_entry, "UPDATE messages SET digest = '\\x00'"),
        "entry:": LastAttempt("entry:%", due_stale_entry, "UPDATE diary_entries SET current_hash = '\\x00'"),
    },
    begins={"diary_entries": lambda row: row["at_seq"]},
    rich=RichRows(
        settings={"diary": {"enabled": True, "auto_write_turns": 1, "lines": 4}},
        write_before=write_entries,
        write_after=change_entries,
        write_last=write_for_replies,
        fill=await_the_user,
    ),
    wording={"diary/2": "8a36c7fa4234", "diary_entry/2": "afd487184abc"},
    examples=frozenset({"Brannagh", "Pell", "Ines", "Filippa"}),
    write=write_two,
    before={"regenerate_folded_diary": outgrow},
    missing={"/diary": "entry_not_found"},
    in_presets={
        "diary.enabled": (False, True, False, False, False, True),
        "diary.scope": ("chat",) * 6,
        "diary.lines": (50, 50, 50, 50, 50, 50),
        "diary.auto_write_turns": (None, None, None, None, None, None),
    },
    golden_settings={
        "a shorter diary": ("diary", {"diary": {"lines": 12}}, {"diary"}),
        "no diary": ("diary", {"diary": {"enabled": False}}, {"diary"}),
    },
    unasked_prompts=frozenset({"diary_entry"}),
)
