"""Names of white space: new ones are refused; chats that have one can be read, renamed, exported and imported."""

from typing import Any

import httpx
import pytest

from app.kit.db import Database
from tests.api.path_parameters import SCHEMA
from tests.book import change
from tests.chats.renames import rename
from tests.talk import append, context, get, ok, put, said
from tests.transfer.files import export_file, import_file

BLANK = [" ", "\t", "\u3000 \n"]


@pytest.mark.parametrize("name", BLANK)
@pytest.mark.parametrize(
    ("given", "location"),
    [
        (lambda name: {"characters": [{"name": name}]}, ["body", "characters", 0, "name"]),
        (lambda name: {"user_name": name}, ["body", "user_name"]),
    ],
)
async def test_a_blank_name_is_refused(api: httpx.AsyncClient, name: str, given: Any, location: list[Any]) -> None:
    refused = await put(api, status=422, **given(name))
    assert refused["errors"] == [{"loc": location, "msg": "must not be only white space"}]


async def test_a_character_gets_no_blank_name(api: httpx.AsyncClient) -> None:
    await put(api, characters=[{"name": "Kai"}])
    refused = await rename(api, "Kai", "  ", 422)
    assert refused["errors"] == [{"loc": ["body", "name"], "msg": "must not be only white space"}]


@pytest.mark.parametrize("file_format", ["jsonl", "vault"])
async def test_a_chat_with_blank_names_stays_usable(
    api: httpx.AsyncClient, database: Database, tenant: str, file_format: str
) -> None:
    await put(api, characters=[{"name": "Kai"}], user_name="Mira")
    await append(api, [said(1), said(2)])
    columns = "user_name = ' ', characters = jsonb_set(characters::jsonb, '{0,name}', '\" \"')"
    await change(database, tenant, "chats", columns)
    assert (await get(api, ""))["user_name"] == " "
    assert (await context(api, format="openai"))["messages"]
    file = await export_file(api, file_format=file_format)
    await import_file(api, file, "copy", file_format)
    copy = ok(await api.get("/v1/chats/copy"), 200)
    assert (copy["user_name"], [one["name"] for one in copy["characters"]]) == (" ", [" "])
    renamed = await rename(api, "%20", "Cay")
    assert [one["name"] for one in renamed["characters"]] == ["Cay"]


def test_the_openapi_document_has_the_rule() -> None:
    schemas = SCHEMA["components"]["schemas"]
    assert [schemas[name]["properties"]["name"]["pattern"] for name in ("Character", "CharacterRename")] == [r"\S"] * 2
