"""Vaults over HTTP and as a shell uses them."""

import io
import zipfile
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from tests.commands.test_transfer import memobook, on_fresh_database
from tests.talk import append, ok, put, talk
from tests.transfer.files import export_file, import_file
from tests.vault.vaults import export, files_of, ref_of, restore, zip_of

__all__ = ["on_fresh_database"]


async def test_a_chat_returns_over_http(api: httpx.AsyncClient) -> None:
    await put(api, user_name="Mira", characters=[{"name": "Kai"}])
    await append(api, talk(1, 4))
    answer = await api.get("/v1/chats/c/export?format=vault")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="c.zip"'
    made = await import_file(api, answer.content, "d", "vault")
    assert made["counters"]["messages"] == 4
    assert files_of(await export_file(api, "d", "vault")) == files_of(answer.content)


async def test_the_pages_show_the_line_that_is_asked_for(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    early = ok(await api.post("/v1/chats/c/checkpoints", json={"name": "early"}), 201)["line"]
    await append(api, talk(3, 4))
    now, then = [files_of(await export_file(api, "c", "vault", **query)) for query in ({}, {"line": early})]
    assert now["state.json"] == then["state.json"]
    assert (b"number 4" in now["story/0001.md"], b"number 4" in then["story/0001.md"]) == (True, False)
    answer = await api.get("/v1/chats/c/export", params={"format": "vault", "line": str(uuid4())})
    assert answer.status_code == 404


@pytest.mark.parametrize("file", [b"", b"no", zip_of({"a.md": b""}), zip_of({"state.json": b"{}"})])
async def test_a_file_that_is_not_a_vault_is_refused(
    api: httpx.AsyncClient, connection: Connection, tenant: str, file: bytes
) -> None:
    problem = await import_file(api, file, "d", "vault", status=422)
    assert problem["code"] == "invalid_file"
    assert "\n" not in problem["detail"]
    count = "SELECT count(*) FROM chats WHERE chat_key = $1"
    assert await connection.fetchval(count, chat_key(tenant, "d")) == 0


@pytest.mark.usefixtures("on_fresh_database")
async def test_a_vault_goes_through_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"id":"m1","role":"user","content":"Hi.","sent_at":"2026-01-01T00:00:00Z"}\n')
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    for chat_id, to in (("c", "one.zip"), ("d", "two.zip")):
        assert await memobook("export", chat_id, "--format", "vault", "--output", to) == 0
        if chat_id == "c":
            assert await memobook("import", to, "--format", "vault", "--chat-id", "d") == 0
    one, two = [files_of((tmp_path / name).read_bytes()) for name in ("one.zip", "two.zip")]
    assert one == two
    capsys.readouterr()
    assert await memobook("import", "one.zip", "--format", "vault", "--chat-id", "d") == 1
    assert capsys.readouterr().err.count("\n") == 1


async def test_an_unpacked_vault_can_be_packed_again(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files_of(await export_file(api, "c", "vault")).items():
            archive.writestr(f"my vault/{name}", content)
    await import_file(api, file.getvalue(), "d", "vault")
    assert (await import_file(api, file.getvalue(), "d", "vault", status=409))["code"] == "chat_taken"


async def test_a_damaged_page_is_refused(api: httpx.AsyncClient) -> None:
    """Although an import reads only state.json."""
    await append(api, talk(1, 2))
    damaged = bytearray(await export_file(api, "c", "vault"))
    damaged[damaged.index(b"README.md") + 20] ^= 0xFF
    problem = await import_file(api, bytes(damaged), "d", "vault", status=422)
    assert problem["detail"].startswith("README.md: the file in the zip is damaged")


async def test_a_damaged_entry_beside_the_vault_is_refused(api: httpx.AsyncClient) -> None:
    """Although a folder surrounds the vault, and the entry is not in it."""
    damaged = bytearray(zip_of({"my vault/state.json": b"", "beside.md": b"Hello.\n"}))
    damaged[damaged.index(b"beside.md") + len("beside.md")] ^= 0xFF
    problem = await import_file(api, bytes(damaged), "d", "vault", status=422)
    assert problem["detail"].startswith("beside.md: the file in the zip is damaged")


async def test_long_numbers_come_back_digit_by_digit(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """A vault is restored from the rows as they are written, so no number is read and written again."""
    await put(api, metadata={"n": 7_000_000_000})
    await append(api, [message | {"metadata": {"n": 7_000_000_000}} for message in talk(1, 2)])
    files = files_of(await export(database, ref_of(tenant)))
    state = files["state.json"].replace(b"7000000000", b"123456789012345678901234567890")
    assert state.count(b"123456789012345678901234567890") == 3
    await restore(database, zip_of(files | {"state.json": state}), ref_of(tenant, "d"))
    again = files_of(await export(database, ref_of(tenant, "d")))
    assert again["state.json"] == state
    assert again["transcript.jsonl"].count(b"123456789012345678901234567890") == 2
