"""Exports and imports over HTTP."""

from typing import Any

import httpx
import orjson

from tests.talk import Json, ok


def make_file(*lines: Json) -> bytes:
    """A file with these lines."""
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def read_file(file: bytes) -> list[Json]:
    """The lines of a file."""
    return [orjson.loads(line) for line in file.splitlines()]


async def export_file(api: httpx.AsyncClient, chat_id: str = "c", file_format: str = "jsonl", **query: Any) -> bytes:
    """The file of a chat."""
    answer = await api.get(f"/v1/chats/{chat_id}/export", params={"format": file_format, **query})
    assert answer.status_code == 200, answer.text
    return answer.content


async def import_file(
    api: httpx.AsyncClient, file: bytes, chat_id: str = "c", file_format: str = "jsonl", status: int = 201
) -> Json:
    """Import a file as a new chat."""
    query = {"format": file_format, "chat_id": chat_id}
    return ok(await api.post("/v1/import", params=query, content=file), status)
