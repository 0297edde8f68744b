"""Records the calls of tools, and lists them.

A *binding* connects what a call wrote with the reply that it belongs to. Each call has a record, a binding, or both:
calls that write nothing have no binding, and only the newest records of a chat are kept.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from app.bindings import records
from app.bindings import service as bindings
from app.bindings.models import Binding
from app.bindings.records import Recorded
from app.chats.chat_lock import ChatRef
from app.chats.service import get_line
from app.kit.db import Database, DbSession
from app.kit.errors import AppError
from app.kit.ids import uuid7
from app.layers.layer import Layer
from app.layers.tool import Answer
from app.tools import toolbox
from app.tools.wording import status_of, word_answered, word_effect

MAX_NAME_CHARS = 100
"""The maximum length of a recorded name. A longer name, which no tool has, is cut to this length."""

REFUSALS = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
"""The statuses of errors that say what is wrong with a call. Other statuses say that it could not be run now."""


class Given(NamedTuple):
    """A call as it was sent.

    Attributes:
        tool: The name of the tool.
        character: The character that the request names.
        body: The body of the request.
        now: The service's time.

    """

    tool: str
    character: str | None
    body: bytes
    now: datetime


class Listed(NamedTuple):
    """One call in a list of calls: its record, its binding, or both."""

    call_id: UUID
    recorded: Recorded | None
    binding: Binding | None


async def record(db_session: DbSession, ref: ChatRef, given: Given, answer: Answer) -> None:
    """Record a call with its answer in the transaction of the call. A repetition of a recorded call is not recorded."""
    if answer.outcome != "repeated":
        recorded = _record_of(ref, given, answer.text, answer.written_id or uuid7())
        await records.insert_record(db_session, ref, recorded._replace(outcome=answer.outcome))


async def record_refusal(database: Database, ref: ChatRef, given: Given, error: AppError) -> None:
    """Record a call that was refused with an error of REFUSALS. A failure to record it is ignored."""
    if error.status not in REFUSALS:
        return
    with suppress(AppError):
        async with database.unit_of_work(ref.tenant, ref.key) as db_session:
            await records.insert_record(db_session, ref, _record_of(ref, given, error.detail, uuid7()))


def _record_of(ref: ChatRef, given: Given, answer: str, call_id: UUID) -> Recorded:
    try:
        arguments = orjson.dumps(orjson.loads(given.body)).decode()
    except ValueError:
        arguments = None
    tool = given.tool.encode(errors="replace").decode().replace("\0", "")[:MAX_NAME_CHARS]
    return Recorded(call_id, tool, given.character or "", arguments, "refused", answer, 0, ref.only_chat, given.now)


async def list_calls(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, after: UUID | None, limit: int
) -> Sequence[Listed]:
    """Return a page of the calls of a line, oldest first. Raises ChatNotFound, LineNotFound.

    These are the calls that were made on the line, and those of other lines whose bindings were copied to this line.
    """
    key = (ref.key, (await get_line(db_session, ref, line)).line_id)
    recorded = {one.call_id: one for one in await records.list_records(db_session, key, after=after, limit=limit)}
    found = await bindings.list_calls(db_session, key, after=after, limit=limit)
    bound = {one.binding_id: one for one in found}
    ids = sorted({*recorded, *bound})[:limit]
    return [Listed(call_id, recorded.get(call_id), bound.get(call_id)) for call_id in ids]


async def present(
    db_session: DbSession, layers: Sequence[Layer], calls: Sequence[Listed], *, only_chat: bool
) -> list[dict[str, Any]]:
    """Return the calls as JSON fields.

    `only_chat` is whether the reader's token is limited to the chat. If so, arguments and answers of calls that were
    made without this limit are left out, because they can contain what a user or the tenant knows.
    """
    bound = [one.binding for one in calls if one.binding is not None]
    effects = await toolbox.describe_calls(db_session, layers, bound, only_chat=only_chat)
    return [_present(one, effects, only_chat=only_chat) for one in calls]


def _present(call: Listed, effects: Mapping[UUID, str], *, only_chat: bool) -> dict[str, Any]:
    recorded, binding = call.recorded, call.binding
    shows = recorded is not None and (recorded.only_chat or not only_chat)
    arguments = orjson.Fragment(recorded.arguments) if recorded and shows and recorded.arguments else None
    out = {"id": call.call_id, "arguments": arguments}
    if binding is not None:
        status = status_of(binding.is_open, binding.matches)
        return out | {
            "tool": binding.tool,
            "character": binding.character or None,
            "outcome": "wrote",
            "status": status,
            "effect": word_effect(effects[call.call_id], status),
            "message_id": binding.message_id,
            "at_seq": binding.at_seq,
            "created_at": binding.created_at,
        }
    if recorded is None:
        raise LookupError(f"the call {call.call_id} has neither a record nor a binding")
    return out | {
        "tool": recorded.tool,
        "character": recorded.character or None,
        "outcome": recorded.outcome,
        "status": "dropped" if recorded.outcome == "wrote" else None,
        "effect": word_answered(recorded.outcome, recorded.answer if shows else None),
        "message_id": None,
        "at_seq": recorded.at_seq,
        "created_at": recorded.created_at,
    }
