"""What was imported is exported again, and an export that is imported gives the same export."""

from datetime import UTC
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.transfer.file_formats import FILE_FORMATS
from tests.talk import CALL, Json, append, edit, get, hide, ok, put, said, soft_delete, talk
from tests.transfer.files import export_file, import_file, make_file, read_file

SILLYTAVERN: list[Json] = [
    {
        "user_name": "Nell",
        "character_name": "Quill",
        "create_date": "2025-09-06@18h43m00s",
        "chat_metadata": {"note_prompt": "Be brief.", "variables": {"mood": 3.5}, "tainted": True},
        "future": [1, None],
    },
    {"name": "Nell", "is_user": True, "is_system": False, "send_date": "September 6, 2025 6:43pm", "mes": "Hello?"},
    {
        "name": "Quill",
        "is_user": False,
        "is_system": False,
        "send_date": "2025-09-06T17:43:10.000Z",
        "mes": "Late.",
        "extra": {"model": "m", "reasoning": "She is late. 😀", "token_count": 3},
        "swipe_id": 2,
        "swipes": ["Early.", "", "Late."],
        "swipe_info": [{"send_date": 1}, {}, {"extra": {"model": "m"}}],
        "gen_started": "2025-09-06T17:43:05.000Z",
        "force_avatar": "/q.png",
    },
    {"name": "System", "is_user": False, "is_system": True, "mes": "Welcome!", "extra": {"type": "welcome"}},
    {"name": "Quill", "is_user": False, "is_system": True, "send_date": "unknown", "mes": "Hidden.", "extra": {}},
    {
        "name": "",
        "is_user": False,
        "is_system": False,
        "send_date": 1757180580000,
        "mes": "A storm.",
        "extra": {"type": "narrator"},
    },
    {"name": "Quill", "is_user": False, "is_system": False, "mes": "", "swipes": [""], "swipe_id": 0},
    {"name": "Note", "is_user": False, "is_system": True, "mes": "A note.", "extra": {"type": "comment"}},
]


async def make_chat(api: httpx.AsyncClient, chat_id: str = "c") -> None:
    """A chat with each field that a file can have."""
    await put(
        api,
        chat_id,
        user_id="mira",
        user_name="Mira",
        user_persona="A cartographer.",
        system_prompt="You are Kai.",
        characters=[{"name": "Kai", "persona": "A keeper."}, {"name": "Noor", "disabled": True}],
        settings={"preset": "companion", "memos": {"every_messages": 4}},
        time_zone="Europe/Berlin",
        language="de",
        metadata={"theme": {"b": 1, "a": [1.5, None]}},
    )
    await append(api, [said(1), said(2, name="Kai", sent_at="2026-03-01T10:00:00.123456Z")], chat_id)
    await append(api, [said(3, metadata={"z": 1, "a": "ü"}, importance=0.25), said(4, kind="thought")], chat_id)
    await append(api, [said(5), said(6, content="", tool_calls=[CALL])], chat_id)
    await append(api, [said(7, role="tool", name="look", tool_call_id="call-1"), said(8, role="system")], chat_id)
    await append(api, [said(9, role="narrator"), said(10, content="b", swipes=["a", "b", "c"])], chat_id)
    await append(api, [said(11, content=" \n"), said(12), said(13), said(14), said(15)], chat_id)


async def change_chat(api: httpx.AsyncClient) -> None:
    """Mark, edit and delete messages of the chat `c`, and rename its character."""
    await soft_delete(api, "m12")
    await edit(api, "m13", excluded=True, pinned=True)
    await hide(api, (14, 14))
    await edit(api, "m15", hidden=True)
    await edit(api, "m15", hidden=False)
    await edit(api, "m1", content="What I really said.")
    ok(await api.post("/v1/chats/c/characters/Kai/rename", json={"name": "Kay"}), 200)
    ok(await api.post("/v1/chats/c/characters/Kay/rename", json={"name": "Captain Kai"}), 200)


@pytest.mark.parametrize("file_format", list(FILE_FORMATS))
async def test_an_export_gives_the_same_export_again(api: httpx.AsyncClient, file_format: str) -> None:
    await make_chat(api)
    await change_chat(api)
    exported = await export_file(api, "c", file_format)
    await import_file(api, exported, "d", file_format)
    assert await export_file(api, "d", file_format) == exported


@pytest.mark.parametrize("file_format", ["jsonl", "sillytavern"])
async def test_all_fields_of_a_chat_come_back(api: httpx.AsyncClient, file_format: str) -> None:
    await make_chat(api)
    await change_chat(api)
    made = await import_file(api, await export_file(api, "c", file_format), "d", file_format)
    former = await get(api, "")
    changing = {"chat_id", "line", "anchor_seq", "head_seq", "work", "created_at", "last_active_at", "counters"}
    assert {name: value for name, value in made.items() if name not in changing} == {
        name: value for name, value in former.items() if name not in changing
    }
    messages = (await get(api, "/messages"))["items"]
    again = ok(await api.get("/v1/chats/d/messages"), 200)["items"]
    derived = {"seq", "memo_id", "edited"}
    assert [_without(one, derived) for one in again] == [_without(one, derived) for one in messages]


async def test_a_sillytavern_file_comes_back_with_all_of_its_fields(api: httpx.AsyncClient) -> None:
    await import_file(api, make_file(*SILLYTAVERN), "c", "sillytavern")
    messages = (await get(api, "/messages"))["items"]
    assert [(one["id"], one["role"], one["name"], one["content"]) for one in messages] == [
        ("st-000002", "user", "Nell", "Hello?"),
        ("st-000003", "assistant", "Quill", "Late."),
        ("st-000005", "assistant", "Quill", "Hidden."),
        ("st-000006", "narrator", None, "A storm."),
    ]
    assert [one["hidden_by"] for one in messages] == [None, None, "user", None]
    assert (messages[1]["swipes"], messages[1]["selected_swipe"]) == (["Early.", "Late."], 1)
    assert read_file(await export_file(api, "c", "sillytavern")) == SILLYTAVERN


async def test_a_file_comes_back_through_another_format(api: httpx.AsyncClient) -> None:
    await import_file(api, make_file(*SILLYTAVERN), "c", "sillytavern")
    await import_file(api, await export_file(api, "c", "jsonl"), "d", "jsonl")
    assert read_file(await export_file(api, "d", "sillytavern")) == SILLYTAVERN
    lines: list[Json] = [{"chat": {"new": 1}, "kept": 2}, {"id": "a", "role": "user", "content": "Hi.", "mood": "calm"}]
    await import_file(api, make_file(*lines), "e", "jsonl")
    await import_file(api, await export_file(api, "e", "sillytavern"), "f", "sillytavern")
    again = read_file(await export_file(api, "f", "jsonl"))
    assert (again[0]["chat"]["new"], again[0]["kept"], again[1]["mood"]) == (1, 2, "calm")


async def test_a_transcript_has_five_fields_and_comes_back(api: httpx.AsyncClient) -> None:
    lines: list[Json] = [
        {"ts": "2026-02-08T10:00:00Z", "role": "user", "content": "Look!", "actions": [], "meta": {"source": "web"}},
        {"ts": "2026-02-08T10:00:01.250000Z", "role": "assistant", "content": "", "actions": [CALL], "meta": {}},
        {"ts": 1770544802, "role": "assistant", "content": "A lamp.", "actions": [{"tool": "look"}], "meta": {}},
    ]
    await import_file(api, make_file(*lines), "c", "transcript")
    messages = (await get(api, "/messages"))["items"]
    assert [(one["id"], one["sent_at"]) for one in messages] == [
        ("line-000001", "2026-02-08T10:00:00Z"),
        ("line-000002", "2026-02-08T10:00:01.250000Z"),
        ("line-000003", "2026-02-08T10:00:02Z"),
    ]
    assert [one["tool_calls"] for one in messages] == [None, [CALL], None]
    assert read_file(await export_file(api, "c", "transcript")) == lines
    await edit(api, "line-000003", content="Two lamps.", pinned=True)
    assert read_file(await export_file(api, "c", "transcript"))[2] == lines[2] | {
        "content": "Two lamps.",
        "meta": {"memobook": {"pinned": True}},
    }


async def test_a_line_of_a_vault_is_read_as_a_transcript(api: httpx.AsyncClient) -> None:
    line = {"ts": "2026-02-08T10:00:00Z", "role": "assistant", "name": "Kai", "content": "A.", "seq": 7, "id": "a"}
    made = await import_file(api, make_file(line), "c", "transcript")
    assert [one["name"] for one in made["characters"]] == ["Kai"]
    (message,) = (await get(api, "/messages"))["items"]
    assert (message["id"], message["name"], message["seq"]) == ("a", "Kai", 1)


async def test_a_group_chat_without_header_stays_without_one(api: httpx.AsyncClient) -> None:
    lines = [line | {"original_avatar": "q.png"} for line in (SILLYTAVERN[2], SILLYTAVERN[1])]
    made = await import_file(api, make_file(*lines), "c", "sillytavern")
    assert [one["name"] for one in made["characters"]] == ["Quill"]
    assert read_file(await export_file(api, "c", "sillytavern")) == lines
    await put(api, status=200, user_persona="A cartographer.")
    header, *rest = read_file(await export_file(api, "c", "sillytavern"))
    assert header == {"chat_metadata": {"memobook": {"user_persona": "A cartographer."}}}
    assert [line["mes"] for line in rest] == ["Late.", "Hello?"]


async def test_a_field_of_our_name_comes_back(api: httpx.AsyncClient) -> None:
    """Another program can have a field with the name below which the service writes its own fields."""
    header = {**SILLYTAVERN[0], "chat_metadata": {"memobook": "theirs"}}
    lines = [header, SILLYTAVERN[1] | {"extra": {"memobook": "theirs", "model": "m"}}]
    await import_file(api, make_file(*lines), "c", "sillytavern")
    assert read_file(await export_file(api, "c", "sillytavern")) == lines
    await put(api, status=200, user_persona="A cartographer.")
    await edit(api, "st-000002", pinned=True)
    changed = await export_file(api, "c", "sillytavern")
    await import_file(api, changed, "d", "sillytavern")
    assert await export_file(api, "d", "sillytavern") == changed
    await put(api, "d", status=200, user_persona=None)
    ok(await api.patch("/v1/chats/d/messages/st-000002", json={"pinned": False}), 200)
    assert read_file(await export_file(api, "d", "sillytavern")) == lines


async def test_a_later_message_has_the_name_of_the_users_lines(api: httpx.AsyncClient) -> None:
    await import_file(api, make_file(SILLYTAVERN[2], SILLYTAVERN[1]), "c", "sillytavern")
    await append(api, [said(3)])
    lines = read_file(await export_file(api, "c", "sillytavern"))
    assert [line["name"] for line in lines] == ["Quill", "Nell", "Nell"]
    await import_file(api, make_file(*lines), "d", "sillytavern")
    assert read_file(await export_file(api, "d", "sillytavern")) == lines


async def test_a_line_that_shows_a_swipe_without_text_is_kept(api: httpx.AsyncClient) -> None:
    line = {"name": "Quill", "is_user": False, "mes": "", "swipes": ["Early.", None], "swipe_id": 1}
    lines = [SILLYTAVERN[0], SILLYTAVERN[1], line]
    made = await import_file(api, make_file(*lines), "c", "sillytavern")
    assert made["counters"]["messages"] == 1
    assert read_file(await export_file(api, "c", "sillytavern")) == lines


async def test_a_change_is_exported_with_the_fields_of_the_file(api: httpx.AsyncClient) -> None:
    await import_file(api, make_file(*SILLYTAVERN), "c", "sillytavern")
    await edit(api, "st-000003", content="Very late.", hidden=True)
    ok(await api.post("/v1/chats/c/messages/st-000003/swipes", json={"content": "Too late."}), 201)
    await edit(api, "st-000005", hidden=False)
    lines = read_file(await export_file(api, "c", "sillytavern"))
    assert lines[2] == SILLYTAVERN[2] | {
        "mes": "Too late.",
        "is_system": True,
        "swipes": ["Early.", "", "Very late.", "Too late."],
        "swipe_id": 3,
    }
    assert lines[4] == SILLYTAVERN[4] | {"is_system": False, "extra": {"memobook": {"hidden": False}}}


async def test_a_message_without_name_is_exported_with_its_speaker(api: httpx.AsyncClient) -> None:
    await put(api, user_name="Mira", characters=[{"name": "Kai"}])
    await append(api, talk(1, 2))
    lines = read_file(await export_file(api, "c", "sillytavern"))
    assert [line["name"] for line in lines[1:]] == ["Mira", "Kai"]
    await import_file(api, make_file(*lines), "d", "sillytavern")
    assert [one["name"] for one in ok(await api.get("/v1/chats/d/messages"), 200)["items"]] == [None, None]


async def test_moved_messages_keep_their_fields(api: httpx.AsyncClient) -> None:
    lines = [{"id": f"m{n}", "role": "user", "content": f"Lamp {n}.", "mood": n} for n in (1, 2, 3)]
    await import_file(api, make_file(*lines))
    moved = [{"id": f"m{n}", "role": "user", "content": f"Lamp {n}."} for n in (1, 3, 2)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": moved}), 200)
    exported = read_file(await export_file(api))
    assert [(line["id"], line["mood"]) for line in exported[1:]] == [("m1", 1), ("m3", 3), ("m2", 2)]


async def test_another_line_can_be_exported(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    former = (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    ok(await api.post("/v1/chats/c/checkpoints/here/restore"), 201)
    await soft_delete(api, "m3")
    assert len(read_file(await export_file(api, line=former))) == 4
    assert len(read_file(await export_file(api))) == 3


def _without(item: Json, names: set[str]) -> Json:
    return {name: value for name, value in item.items() if name not in names}


# --- Any file ---------------------------------------------------------------------------------------

_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_text, inner, max_size=2),
    max_leaves=4,
)
_fields = st.dictionaries(_text, _value, max_size=2)
_said = st.text(st.sampled_from("ab \n😀"), max_size=4)
_time = st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat())


@st.composite
def sillytavern_files(draw: st.DrawFn) -> bytes:
    """A file with anything that SillyTavern or another program may write, and some things that none does."""
    header = st.fixed_dictionaries({}, optional={"user_name": _value, "chat_metadata": _value | _fields})
    lines = draw(st.lists(_sillytavern_line(), max_size=4))
    return make_file(*draw(st.lists(header, max_size=1)), *lines)


def _sillytavern_line() -> st.SearchStrategy[Json]:
    extra = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["narrator", "comment", "help", ""]),
            "memobook": st.fixed_dictionaries({}, optional={"id": st.sampled_from("xyz"), "pinned": st.just(True)}),
            "model": _value,
        },
    )
    return st.builds(
        lambda known, other: {**other, **known},
        st.fixed_dictionaries(
            {"mes": _said},
            optional={
                "name": st.sampled_from(["Nell", "Quill", "", None]),
                "is_user": st.booleans(),
                "is_system": st.booleans(),
                "send_date": _value | st.sampled_from(["September 6, 2025 6:43pm", "2025-09-06T17:43:00.000Z"]),
                "extra": extra | _value,
                "swipes": st.lists(_said, max_size=3) | st.none(),
                "swipe_id": st.integers(-1, 3),
                "swipe_info": st.lists(_value, max_size=2),
            },
        ),
        _fields,
    )


@st.composite
def jsonl_files(draw: st.DrawFn) -> bytes:
    """A file of messages, with unknown fields anywhere."""
    lines = draw(st.lists(_jsonl_line(), max_size=4, unique_by=lambda line: line.get("id", id(line))))
    header = st.fixed_dictionaries(
        {"chat": st.fixed_dictionaries({}, optional={"user_name": st.just("Mira"), "more": _value})},
        optional={"more": _value, "other_formats": _value},
    )
    return make_file(*draw(st.lists(header, max_size=1)), *lines)


def _jsonl_line() -> st.SearchStrategy[Json]:
    return st.builds(
        lambda known, other: {**other, **known},
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "narrator"]), "content": _said},
            optional={
                "id": st.sampled_from(["x", "y", "line-000002"]),
                "name": st.sampled_from(["Mira", None]),
                "sent_at": _time,
                "metadata": _fields,
                "hidden": st.booleans(),
                "pinned": st.booleans(),
                "importance": st.floats(0, 1),
            },
        ),
        _fields,
    )


def transcript_files() -> st.SearchStrategy[bytes]:
    """A file with a few fields of the form, and others."""
    memobook = st.fixed_dictionaries({}, optional={"id": st.sampled_from("xy"), "hidden": st.booleans()})
    line = st.builds(
        lambda known, other: {**other, **known},
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant"]), "content": _said},
            optional={
                "ts": _value | _time | st.floats(0, 2e9),
                "actions": _value | st.just([CALL]),
                "meta": _value | st.fixed_dictionaries({"memobook": memobook, "tokens": _value}),
            },
        ),
        _fields,
    )
    return st.lists(line, max_size=4).map(lambda lines: make_file(*lines))


FILES = {"sillytavern": sillytavern_files(), "jsonl": jsonl_files(), "transcript": transcript_files()}
READ = {
    "sillytavern": {"name", "is_user", "is_system", "mes", "send_date", "swipes", "swipe_id", "extra", "chat_metadata"},
    "transcript": {"role", "content", "ts", "actions", "meta", "id", "name", "seq"},
    "jsonl": {"role", "content", "id", "name", "sent_at", "metadata", "hidden", "pinned", "importance", "chat"},
}
"""The fields that the service reads; it may write them in another way."""


@pytest.mark.parametrize("file_format", list(FILES))
@settings(max_examples=25, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_any_file_comes_back_with_its_fields_and_stays_alike(
    api: httpx.AsyncClient, file_format: str, data: st.DataObject
) -> None:
    file = data.draw(FILES[file_format])
    chat_id = uuid4().hex
    answer = await api.post("/v1/import", params={"format": file_format, "chat_id": chat_id}, content=file)
    if answer.status_code != 201:
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_file"), answer.text
        return
    first = await export_file(api, chat_id, file_format)
    await import_file(api, first, f"{chat_id}-2", file_format)
    assert await export_file(api, f"{chat_id}-2", file_format) == first
    given_lines, written_lines = read_file(file), read_file(first)
    for line, written in zip(given_lines, written_lines[len(written_lines) - len(given_lines) :], strict=True):
        unknown = _without(line, READ[file_format])
        assert {name: written.get(name) for name in unknown} == unknown
        if isinstance(extra := line.get("extra"), dict) and file_format == "sillytavern":
            assert _without(extra, {"memobook"}).items() <= written.get("extra", {}).items()
