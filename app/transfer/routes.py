"""HTTP routes of exports and imports."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool

from app.chats import service as chats
from app.chats.chat_lock import ChatRef
from app.chats.deps import Line, ReadingChat
from app.chats.presenters import present_chats
from app.chats.schemas import ChatOut
from app.kit.auth import Writer
from app.kit.deps import Now, Pool
from app.kit.validation_errors import CHAT_ID_PATTERN
from app.kit.wire import OrjsonResponse
from app.transfer.errors import TooManyImports
from app.transfer.file_formats import FILE_FORMATS

router = APIRouter(prefix="/v1", tags=["chats"])

IMPORT_PATH: Final = "/v1/import"

MAX_IMPORTS: Final = 2
"""How many files a process reads at once. Each is stored in the temporary folder, which may be in memory."""


def _known(name: str) -> str:
    if name not in FILE_FORMATS:
        raise ValueError(f"must be one of {', '.join(FILE_FORMATS)}")
    return name


FormatName = Annotated[
    str,
    AfterValidator(_known),
    Query(
        alias="format",
        description="The format of the file.",
        examples=["jsonl"],
        json_schema_extra={"enum": list(FILE_FORMATS)},
    ),
]

_EXAMPLE = """\
{"chat": {"user_name": "Mira", "characters": [{"name": "Kai"}]}}
{"id": "m1", "role": "user", "name": "Mira", "content": "I found your letter."}
{"id": "m2", "role": "assistant", "name": "Kai", "content": "Then you know why I stayed."}
"""

_FILE: dict[str, Any] = {
    media_type: {"schema": {"type": "string", "format": "binary", "description": "The file."}}
    for media_type in dict.fromkeys(one.media_type for one in FILE_FORMATS.values())
}


class ImportSlots:
    """Counts the files that a process is reading."""

    def __init__(self, slots: int = MAX_IMPORTS) -> None:
        self._left = slots

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take a slot for the block. Raises TooManyImports."""
        if not self._left:
            raise TooManyImports("Other files are being imported; try again.")
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


@router.get(
    "/chats/{chat_id}/export",
    response_class=StreamingResponse,
    responses={200: {"content": _FILE, "description": "The file."}},
)
async def export_chat(
    ref: ReadingChat,
    pool: Pool,
    file_format: FormatName,
    line: Line = None,
) -> Response:
    """Export a chat as a file.

    - `sillytavern`: a chat as SillyTavern saves it.
    - `jsonl`: a description of the chat, then each message as an append takes it.
    - `transcript`: `ts`, `role`, `content`, `actions` and `meta` of each message, and nothing about the chat.
    - `vault`: a zip that an import restores, with all lines, the memory, deleted messages and former texts.
      It also has pages in Markdown, for reading.

    `line` selects the line for the pages of a vault, and for the other formats. Only a vault has the memory, deleted
    messages and former texts.
    """
    form = FILE_FORMATS[file_format]
    parts = await form.write(pool, ref, line)
    headers = {"Content-Disposition": f'attachment; filename="{ref.chat_id}{form.suffix}"'}
    return StreamingResponse(parts, media_type=form.media_type, headers=headers)


@router.post(
    "/import",
    status_code=201,
    response_model=ChatOut,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                **_FILE,
                "application/jsonl": {**_FILE["application/jsonl"], "examples": {"jsonl": {"value": _EXAMPLE}}},
            },
        }
    },
)
async def import_chat(
    request: Request,
    caller: Writer,
    file_format: FormatName,
    chat_id: Annotated[
        str,
        Query(pattern=CHAT_ID_PATTERN, description="The id of the new chat.", examples=["imported"]),
    ],
    pool: Pool,
    clock: Now,
) -> Response:
    """Make a new chat from a file.

    The chat is made as a whole or not at all. Its messages keep their ids, times and swipes, and stay pinned, hidden or
    excluded. A message without an id gets one from its line number in the file. Fields that the service does not know
    are stored for an export. A vault restores all lines and the memory of the chat, and what was learnt in the chat for
    its user or the tenant.
    """
    ref = ChatRef.of(caller, chat_id)
    slots: ImportSlots = request.app.state.import_slots
    with slots.taken(), TemporaryFile() as file:
        async for part in request.stream():
            await run_in_threadpool(file.write, part)
        await FILE_FORMATS[file_format].read(pool, ref, file, clock())
    async with pool.unit_of_work(caller.tenant) as db_session:
        (out,) = await present_chats(db_session, [await chats.get_chat(db_session, ref)])
    return OrjsonResponse(out, status_code=201)
