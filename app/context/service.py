"""Assembles the context of the next model call: one statement, then pure thinking. Reading changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import orjson

from app.chats.errors import LineNotFound
from app.chats.service import ChatRef
from app.chats.settings import ChatSettings, effective_json
from app.context import texts
from app.context.budget import BudgetTooSmallError, fit
from app.context.errors import BudgetTooSmall
from app.context.formats import is_said, render
from app.context.parts import Fitted, Omission, Parts
from app.context.pinned import PinnedLine, build_pinned, choose_pinned
from app.context.queries import find_context, read_entries
from app.context.schemas import ContextOptions, ContextQuery, OwnSegment
from app.context.segments import Entry, Manner, Segment
from app.context.wording import speech_of
from app.kit.db import Database
from app.kit.tokens import count_tokens
from app.memos.segment import MemoLine, choose_lines, summarise_shown, word_lines

DRAFT_ID = "draft"


@dataclass(frozen=True, slots=True)
class Source:
    """What the statement brought, read."""

    row: asyncpg.Record
    settings: ChatSettings
    characters: Sequence[Mapping[str, Any]]
    window: Mapping[str, Any]
    history: Sequence[Entry]
    pinned: Sequence[Entry]


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
    manner = Manner(
        format=options.format,
        speech=speech_of(settings, source.characters, row["time_zone"]),
        prefill=options.prefill,
        token_factor=settings.token_factor,
        count=count_tokens,
    )
    memos, memos_over = choose_lines(source.window, settings)
    pinned, pinned_over = choose_pinned(source.pinned, settings, manner.speech)
    parts = _gather(source, options, own, memos, pinned, options.now or now)
    try:
        fitted = fit(parts, max_tokens, manner, _build_memos)
    except BudgetTooSmallError as error:
        place = "body" if isinstance(options, ContextOptions) else "query"
        raise BudgetTooSmall(
            f"max_tokens is {max_tokens}, but what is never left out needs {error.needed_tokens}.",
            errors=[{"loc": [place, "max_tokens"], "msg": f"must be at least {error.needed_tokens}"}],
            extra={"needed_tokens": error.needed_tokens},
        ) from None
    over_budget = [
        *(Omission(f"memo {line.number}", "budget", line.tokens) for line in memos_over),
        *(Omission(f"message:{line.message_id}", "budget", line.tokens) for line in pinned_over),
    ]
    return _answer(ref, source, options, fitted, max_tokens, over_budget)


def _read(row: asyncpg.Record) -> Source:
    return Source(
        row=row,
        settings=effective_json(row["settings"]),
        characters=orjson.loads(row["characters"]),
        window=orjson.loads(row["memo_window"]),
        history=read_entries(row["history"]),
        pinned=read_entries(row["pinned"]),
    )


def _gather(
    source: Source,
    options: ContextQuery,
    own: Sequence[OwnSegment],
    memos: Sequence[MemoLine],
    pinned: Sequence[PinnedLine],
    now: datetime,
) -> Parts:
    """Everything that could go into the context."""
    row, settings = source.row, source.settings
    history = list(source.history)
    if options.draft is not None:
        newest: Entry | None = _draft(row["head_seq"], options.draft, now)
    else:
        last = next((at for at in reversed(range(len(history))) if is_said(history[at])), None)
        newest = None if last is None or history[last].role != "user" else history.pop(last)
    texts_by_name = [
        ("system", row["system_prompt"] or ""),
        ("character", texts.word_characters(source.characters)),
        ("user", texts.word_user(row["user_persona"])),
        ("instruction", texts.word_instruction(settings.instruction, memos=bool(memos), pinned=bool(pinned))),
    ]
    segments = [Segment(name, text, count_tokens(text)) for name, text in texts_by_name if text.strip()]
    if pinned:
        segments.append(build_pinned(pinned))
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
    over_budget: Sequence[Omission],
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
        "omitted": [*over_budget, *fitted.omitted],
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
