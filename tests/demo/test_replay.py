"""How a conversation is cut into requests, and how it comes past the service's door."""

import io

import httpx
import pytest
from fastapi import FastAPI

from app.demo.access import access
from app.demo.api import Api
from app.demo.errors import DemoError
from app.demo.replay import split_steps
from app.demo.screen import Screen
from app.demo.tool_calls import Message, ToolCall
from app.keys.service import create_key, list_keys
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.settings import Settings
from tests.conftest import client_of, sqlalchemy_url

ROLES = {"u": "user", "a": "assistant", "n": "narrator"}
ADMIN_KEY = "k" * 32


def steps(story: str) -> list[tuple[str, bool, int]]:
    """The steps of a story in which each letter is a message, but for `t`, which is a tool call."""
    moments: list[Message | ToolCall] = [
        ToolCall("Quill", {}) if role == "t" else {"role": ROLES[role]} for role in story
    ]
    return [
        ("".join(message["role"][0] for message in step.messages), step.asks, len(step.calls))
        for step in split_steps(moments)
    ]


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("", []),
        ("uaua", [("u", True, 0), ("au", True, 0), ("a", False, 0)]),
        ("nuau", [("nu", True, 0), ("au", True, 0)]),
        ("auaa", [("au", True, 0), ("a", True, 0), ("a", False, 0)]),
        ("un", [("un", False, 0)]),
        ("uuuuuuuuuua", [("uuuuuuuu", False, 0), ("uu", True, 0), ("a", False, 0)]),
    ],
)
def test_a_context_is_asked_for_where_the_assistant_speaks_next(
    story: str, expected: list[tuple[str, bool, int]]
) -> None:
    assert steps(story) == expected


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("uta", [("u", True, 1), ("a", False, 0)]),
        ("uattu", [("u", True, 0), ("a", False, 2), ("u", True, 0)]),
        ("ut", [("u", True, 1)]),
        ("tu", [("", False, 1), ("u", True, 0)]),
    ],
)
def test_a_tool_is_called_between_its_neighbouring_messages(story: str, expected: list[tuple[str, bool, int]]) -> None:
    assert steps(story) == expected


async def test_a_refusal_of_the_service_is_reported_in_one_line(api: httpx.AsyncClient) -> None:
    with pytest.raises(DemoError, match=r"^PUT /v1/chats/x: 422, body\.time_zone: [^\n]+$"):
        await Api(api).put("/v1/chats/x", {"time_zone": "Atlantis/Capital"})


async def test_a_service_that_is_gone_is_one_line() -> None:
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9", trust_env=False) as client:
        with pytest.raises(DemoError, match=r"^GET /v1/chats/x: no answer \(ConnectError\)$"):
            await Api(client).get("/v1/chats/x")


async def test_a_missing_chat_differs_from_a_rejected_key(app: FastAPI, api: httpx.AsyncClient) -> None:
    assert not await Api(api).exists("/v1/chats/demo")
    await Api(api).put("/v1/chats/demo", {})
    assert await Api(api).exists("/v1/chats/demo")
    async with client_of(app, "mb_no_key") as stranger:
        with pytest.raises(DemoError, match="401"):
            await Api(stranger).exists("/v1/chats/demo")


async def test_a_long_list_is_read_page_by_page(api: httpx.AsyncClient) -> None:
    service = Api(api)
    for number in range(3):
        await service.put(f"/v1/chats/c{number}", {"user_id": "mira"})
    assert len(await service.get_all("/v1/chats")) == 3


async def test_without_keys_the_demo_sends_no_key(fresh_database_url: str) -> None:
    async with access(Settings(database_url=fresh_database_url, _env_file=None)) as key:
        assert key is None


async def test_the_environments_admin_key_is_used_as_it_is(fresh_database_url: str) -> None:
    settings = Settings(database_url=fresh_database_url, admin_key=ADMIN_KEY, _env_file=None)
    async with access(settings) as key:
        assert key == ADMIN_KEY


async def test_if_keys_exist_the_demo_has_its_own_until_it_ends(fresh_database_url: str) -> None:
    settings = Settings(database_url=fresh_database_url, _env_file=None)
    database = Database(sqlalchemy_url(fresh_database_url), pool_size=2)
    try:
        async with database.unit_of_work() as db_session:
            first = await create_key(db_session, "default", ["admin"], system_clock())
        async with access(settings) as key, database.unit_of_work() as db_session:
            known = await list_keys(db_session, limit=10)
            assert key is not None
            assert [one.key_id for one in known if one.key_id in key] == [known[0].key_id]
            assert known[0].scopes == ["read", "write"]
        async with database.unit_of_work() as db_session:
            assert [one.key_id for one in await list_keys(db_session, limit=10)] == [first.key_id]
    finally:
        await database.close()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_changes_until_the_next_is_said() -> None:
    out = Terminal()
    screen = Screen(out)
    screen.show(1, 40, "one")
    screen.show(2, 40, "two")
    screen.say("done")
    screen.say("bye")
    assert out.getvalue() == "\r\x1b[2Kone\r\x1b[2Ktwo\ndone\nbye\n"


def test_without_a_terminal_progress_is_a_few_lines() -> None:
    out = io.StringIO()
    screen = Screen(out)
    for done in range(1, 41):
        screen.show(done, 40, str(done))
    assert out.getvalue().split() == ["4", "8", "12", "16", "20", "24", "28", "32", "36", "40"]
