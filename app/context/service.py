"""Assembles the context of the next model call: one statement, then pure thinking. Reading changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import orjson

from app.chats.errors import LineNotFound
from app.chats.layers import Layer
from app.chats.service import ChatRef, filters_of, get_chat, list_messages
from app.chats.settings import ChatSettings, effective, effective_json
from app.context import texts
from app.context.budget import BudgetTooSmallError, fit
from app.context.errors import BudgetTooSmall
from app.context.formats import is_said, render
from app.context.inclusion import Shown, find_status
from app.context.parts import Fitted, Omission, Parts
from app.context.queries import find_context
from app.context.schemas import ContextOptions, ContextQuery, OwnSegment
from app.context.segments import Entry, Manner, Segment, Speech
from app.kit.db import Database, DbSession
from app.kit.tokens import count_tokens
from app.memos.segment import WINDOW_PARTS, MemoLine, choose_lines, summarise_shown, word_lines

DRAFT_ID = "draft"


@dataclass(frozen=True, slots=True)
class Source:
    """What the statement brought, read."""

    row: asyncpg.Record
    settings: ChatSettings
    characters: Sequence[Mapping[str, Any]]
    window: Mapping[str, Any]
    history: Sequence[Entry]


async def assemble_context(
    database: Database, ref: ChatRef, options: ContextQuery, *, own: Sequence[OwnSegment] = (), now: datetime
) -> dict[str, Any]:
    """The context as it goes over the wire. Raises ChatNotFound, LineNotFound, BudgetTooSmall."""
    async with database.raw() as connection:
        row = await find_context(connection, ref.key, options.line)
    if row is None:
        raise (ref.unknown() if options.line is None else LineNotFound(f"There is no line {str(options.line)!r}."))
    ref.check(row["user_id"])
    source = _read(row)
    settings = source.settings
    max_tokens = options.max_tokens or settings.context_tokens
    alone = source.characters[0]["name"] if len(source.characters) == 1 else None
    manner = Manner(
        format=options.format,
        speech=Speech(settings.timestamps, row["time_zone"], alone),
        prefill=options.prefill,
        token_factor=settings.token_factor,
        count=count_tokens,
    )
    memos, over_budget = choose_lines(source.window, settings)
    parts = _gather(source, options, own, memos, options.now or now)
    try:
        fitted = fit(parts, max_tokens, manner, _build_memos)
    except BudgetTooSmallError as error:
        place = "body" if isinstance(options, ContextOptions) else "query"
        raise BudgetTooSmall(
            f"max_tokens is {max_tokens}, but what is never left out needs {error.needed_tokens}.",
            errors=[{"loc": [place, "max_tokens"], "msg": f"must be at least {error.needed_tokens}"}],
            extra={"needed_tokens": error.needed_tokens},
        ) from None
    return _answer(ref, source, options, fitted, max_tokens, over_budget)


def _read(row: asyncpg.Record) -> Source:
    history = orjson.loads(row["history"]) if row["history"] else ()
    return Source(
        row=row,
        settings=effective_json(row["settings"]),
        characters=orjson.loads(row["characters"]),
        window=orjson.loads(row["memo_window"]),
        history=[
            Entry(seq, message_id, role, name, text, tokens, datetime.fromisoformat(sent_at), calls, call_id)
            for seq, message_id, role, name, text, tokens, sent_at, calls, call_id in history
        ],
    )


async def list_inclusion(
    db_session: DbSession, ref: ChatRef, layers: Sequence[Layer], *, after_seq: int, limit: int
) -> list[dict[str, Any]]:
    """How each message after a seq is in the chat's default context. Raises ChatNotFound."""
    chat = await get_chat(db_session, ref)
    messages = await list_messages(
        db_session, ref.key, chat.line_id, after_seq=after_seq, before_seq=None, limit=limit, newest=False
    )
    if not messages:
        return []
    first_seq, last_seq = messages[0].seq, messages[-1].seq
    covers = [
        cover
        for layer in layers
        for cover in await layer.list_covers(db_session, ref.key, chat.line_id, first_seq, last_seq)
    ]
    settings = effective(chat.settings)
    lines, _ = choose_lines(chat.memo_window, settings)
    shown = Shown(
        chat.anchor_seq,
        window={memo["id"] for part in WINDOW_PARTS for memo in chat.memo_window.get(part, ())},
        within_budget={line.memo_id for line in lines},
    )
    filters = filters_of(settings, chat.characters)
    items = []
    for message in messages:
        cover = next((c for c in covers if c.first_seq <= message.seq <= c.last_seq), None)
        status, by = find_status(message, cover, shown, filters)
        items.append({"seq": message.seq, "message_id": message.message_id, "status": status, "by": by})
    return items


def _gather(
    source: Source, options: ContextQuery, own: Sequence[OwnSegment], memos: Sequence[MemoLine], now: datetime
) -> Parts:
    """Everything that could go into the context."""
    row, settings = source.row, source.settings
    history = list(source.history)
    if options.draft is not None:
        newest: Entry | None = _draft(row["head_seq"], options.draft, now)
    else:
        last = next((at for at in reversed(range(len(history))) if is_said(history[at])), None)
        newest = None if last is None or history[last].role != "user" else history.pop(last)
    instruction = texts.INSTRUCTION if settings.instruction is None else settings.instruction
    texts_by_name = [
        ("system", row["system_prompt"] or ""),
        ("character", texts.word_characters(source.characters)),
        ("user", texts.word_user(row["user_persona"])),
        ("instruction", instruction if memos else ""),
    ]
    segments = [Segment(name, text, count_tokens(text)) for name, text in texts_by_name if text.strip()]
    if settings.time:
        text = texts.word_time(now, row["time_zone"])
        segments.append(Segment("time", text, count_tokens(text), cacheable=False))
    segments += [
        Segment(given.name, given.text, count_tokens(given.text), given.role, after=given.after, depth=given.depth)
        for given in own
    ]
    return Parts(
        segments=segments,
        memos=memos,
        history=history,
        newest=newest,
        anchor_seq=row["anchor_seq"],
        edges=_list_edges(settings, row, history),
    )


def _draft(head_seq: int, text: str, now: datetime) -> Entry:
    return Entry(head_seq + 1, DRAFT_ID, "user", None, text, count_tokens(text), now)


def _list_edges(settings: ChatSettings, row: asyncpg.Record, history: Sequence[Entry]) -> Sequence[int]:
    """Where the history may be trimmed before it is trimmed by message."""
    match settings.history.edges:
        case "batches":
            edges: Sequence[int] = row["batch_edges"]
            return edges
        case "every_8":
            return [entry.seq for entry in history if entry.seq % 8 == 1]
        case _:
            return ()


def _build_memos(lines: Sequence[MemoLine]) -> Segment:
    text = word_lines(lines)
    return Segment("memos", text, count_tokens(text), sources=tuple(f"memo:{line.memo_id}" for line in lines))


def _answer(
    ref: ChatRef,
    source: Source,
    options: ContextQuery,
    fitted: Fitted,
    max_tokens: int,
    over_budget: Sequence[MemoLine],
) -> dict[str, Any]:
    rendered = render(fitted.worded)
    row = source.row
    answer: dict[str, Any] = {
        "chat_id": ref.chat_id,
        "line": row["line_id"],
        "format": options.format,
        "tokens": rendered.tokens,
        "max_tokens": max_tokens,
        "segments": rendered.segments,
    }
    for name in ("messages", "system", "text"):
        value = getattr(rendered, name)
        if value is not None:
            answer[name] = value
    return answer | {
        "history": _history_out(row, fitted),
        "memo_window": summarise_shown(source.window, fitted.memos),
        "breakpoints": rendered.breakpoints,
        "omitted": [*(Omission(f"memo {line.number}", "budget", line.tokens) for line in over_budget), *fitted.omitted],
        "recalled": [],
        "prefix_hash": rendered.prefix_hash,
    }


def _history_out(row: asyncpg.Record, fitted: Fitted) -> dict[str, Any]:
    sent = [entry.seq for entry in fitted.worded.entries]
    newest = fitted.worded.newest
    if newest is not None and isinstance(newest.of, Entry):
        sent.append(newest.of.seq)
    return {
        "anchor_seq": sent[0] if sent else row["anchor_seq"],
        "last_seq": sent[-1] if sent else row["head_seq"],
        "messages": len(sent),
        "last_cut": orjson.Fragment(row["last_cut"]) if row["last_cut"] else None,
    }
