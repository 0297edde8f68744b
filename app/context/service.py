"""Assembles the context of the next model call: mostly one SQL statement, then pure functions.

A second statement follows if layers need more data (`find_current`); recall adds one or two. Nothing is written to
PostgreSQL, except the usage of the embedding model if recall calls one. The sources that were recalled are stored in
this process, and in Redis if there is one.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import orjson

from app.chats.characters import Characters, accepts, list_names
from app.chats.chat_lock import ChatRef
from app.chats.errors import LineNotFound, MessageNotFound
from app.chats.prompt_cache import choice_in_effect
from app.chats.ranges import join_ranges
from app.context import texts
from app.context.budget import BudgetTooSmallError
from app.context.errors import BeforeHistory, BudgetTooSmall, UnknownCharacter
from app.context.formats import is_said, render
from app.context.in_use import in_use
from app.context.parts import Fitted, Omission, Parts
from app.context.pinned import PinnedLine, build_pinned, choose_pinned
from app.context.queries import Row, Source, find_context, find_current, read_material
from app.context.recalling import Found, find_recalled, fit_recalled, is_recalling, present, remember
from app.context.schemas import MAX_TOKENS, ContextOptions, ContextQuery, OwnSegment
from app.context.segments import UNREAD, HistoryMessage, RenderOptions, Segment
from app.context.tables import SegmentTables
from app.context.tags import find_tag
from app.context.wording import style_of
from app.history.cut import every_nth_edge
from app.kit.db import Database
from app.kit.etags import is_known, lists_tag
from app.kit.tokens import count_tokens
from app.layers.contribution import placement_of
from app.layers.layer import Layer
from app.search.meaning import Recalling

DRAFT_ID = "draft"
_LEFT_BY_STEPS = 16
"""`_list_edges` adds no edges of its own among this many newest messages of the history."""


class TextsMissing(Exception):
    """The text of a message that fits into the context was not read."""


async def assemble_context(
    database: Database,
    ref: ChatRef,
    options: ContextQuery,
    layers: Sequence[Layer],
    *,
    own: Sequence[OwnSegment] = (),
    recalling: Recalling | None = None,
    now: datetime,
) -> dict[str, Any]:
    """Return the context as JSON fields.

    Without `recalling`, recall compares words alone, and the recalled sources are not stored.

    Raises ChatNotFound, LineNotFound, MessageNotFound, BeforeHistory, UnknownCharacter and BudgetTooSmall.
    """
    row = await _read_row(database, ref, options)
    return await _assemble(database, ref, row, options, layers, own=own, recalling=recalling, now=now)


async def assemble_unless_known(
    database: Database,
    ref: ChatRef,
    options: ContextQuery,
    layers: Sequence[Layer],
    *,
    own: Sequence[OwnSegment] = (),
    recalling: Recalling,
    known: str | None,
    now: datetime,
) -> tuple[str | None, dict[str, Any] | None]:
    """Return the entity tag (None if there is none) and the context (None if the header `known` matches the tag).

    If `known` matches the tag, the context has not changed and is not assembled. Raises like `assemble_context`.
    """
    row = await _read_row(database, ref, options)
    tag = find_tag(ref, row, options, own)
    if tag is not None and lists_tag(known, tag):
        return tag, None
    context = await _assemble(database, ref, row, options, layers, own=own, recalling=recalling, now=now)
    return tag, None if tag is not None and is_known(known, tag) else context


async def _assemble(
    database: Database,
    ref: ChatRef,
    row: Row,
    options: ContextQuery,
    layers: Sequence[Layer],
    *,
    own: Sequence[OwnSegment],
    recalling: Recalling | None,
    now: datetime,
) -> dict[str, Any]:
    """Return the context of a row, with the results of recall.

    If a message fits although its text was not read, the row is read again with all texts. This is rare: it happens if
    a newer message ends with much white space, which a format removes.
    """
    source = read_material(row, layers, options.character)
    found = None
    if is_recalling(options, source.settings):
        found = await find_recalled(database, ref, source, options, recalling, now=now)
    try:
        context = assemble_source(ref, source, options, own=own, now=now, found=found)
    except TextsMissing:
        whole = await _read_row(database, ref, options, max_tokens=MAX_TOKENS)
        source = read_material(whole, layers, options.character)
        context = assemble_source(ref, source, options, own=own, now=now, found=found)
    if recalling is not None and found is not None and found.hits:
        await remember(recalling.memory, found, context["recalled"])
    return context


async def _read_row(database: Database, ref: ChatRef, options: ContextQuery, *, max_tokens: int | None = None) -> Row:
    """Return the row of the statement, with the texts that can fit `max_tokens`, by default that of `options`.

    Raises ChatNotFound, LineNotFound, MessageNotFound and BeforeHistory.
    """
    limit = max_tokens or options.max_tokens
    async with database.raw(ref.tenant) as connection:
        if options.line is None and options.before is None and not ref.only_chat:
            row = await find_current(connection, ref.tenant, ref.key, limit)
        else:
            queries = (in_use().own_queries if ref.only_chat else in_use().queries) or {}
            row = await find_context(connection, ref.tenant, ref.key, options.line, queries, options.before, limit)
    if row is None:
        raise (ref.unknown() if options.line is None else LineNotFound(f"There is no line {str(options.line)!r}."))
    ref.check(row["user_id"])
    if options.before is not None:
        _check_before(row, options.before)
    return row


def _check_before(row: Row, message_id: str) -> None:
    """Raise MessageNotFound for an unknown message, and BeforeHistory for one before the anchor."""
    if row["before_seq"] is None:
        raise MessageNotFound(f"There is no message {message_id!r}.")
    if row["before_seq"] < row["anchor_seq"]:
        raise BeforeHistory(
            f"The message {message_id!r} has seq {row['before_seq']}, but the history begins at {row['anchor_seq']}. "
            "Fork the chat at the message before it, and get the context of the fork."
        )


def assemble_row(
    ref: ChatRef,
    row: Row,
    options: ContextQuery,
    layers: Sequence[Layer],
    *,
    own: Sequence[OwnSegment],
    now: datetime,
) -> dict[str, Any]:
    """Return the context of a row of the statement. Raises UnknownCharacter, BudgetTooSmall and TextsMissing."""
    return assemble_source(ref, read_material(row, layers, options.character), options, own=own, now=now)


def assemble_source(
    ref: ChatRef,
    source: Source,
    options: ContextQuery,
    *,
    own: Sequence[OwnSegment],
    now: datetime,
    found: Found | None = None,
) -> dict[str, Any]:
    """Return the context of a parsed row, with the results `found` by recall. Raises like `assemble_row`."""
    _check_character(options, source.characters)
    row, settings = source.row, source.settings
    max_tokens = options.max_tokens or settings.context_tokens
    render_options = RenderOptions(
        format=options.format,
        style=style_of(settings, source.characters, row["time_zone"], row["user_name"]),
        prefill=options.prefill,
        token_factor=settings.token_factor,
        count=count_tokens,
        tables=in_use().query_tables if options.query else in_use().tables,
        cache=choice_in_effect(settings, orjson.loads(row["pauses"]) if row["pauses"] else ()),
    )
    pinned, pinned_over = choose_pinned(source.pinned, settings, render_options.style)
    parts = _gather(source, options, own, pinned, render_options, options.now or now)
    try:
        fitted, recalled, trimmed = fit_recalled(found, parts, max_tokens, render_options)
    except BudgetTooSmallError as error:
        raise BudgetTooSmall(
            f"max_tokens is {max_tokens}, but the parts that are never left out need {error.needed_tokens} tokens.",
            errors=[{"loc": _loc_of(options, "max_tokens"), "msg": f"must be at least {error.needed_tokens}"}],
            extra={"needed_tokens": error.needed_tokens},
        ) from None
    if any(message.text is UNREAD for message in fitted.layout.entries) or not all(line.is_read for line in pinned):
        raise TextsMissing
    over_budget = [
        *(Omission(item.name, "budget", item.tokens) for one in parts.contributions for item in one.left_out),
        *(Omission(f"message:{line.message_id}", "budget", line.tokens) for line in pinned_over),
        *trimmed,
    ]
    return _answer(ref, source, options, fitted, max_tokens, over_budget) | {
        "recalled": [present(hit) for hit in recalled]
    }


def _check_character(options: ContextQuery, characters: Characters) -> None:
    """Raise UnknownCharacter for an unknown name. Without this error, a misspelt name would leave out the diary."""
    if options.character is None or accepts(characters, options.character):
        return
    names = list_names(characters)
    raise UnknownCharacter(
        f"The chat has no character {options.character!r}; it has {', '.join(map(repr, names))}.",
        errors=[{"loc": _loc_of(options, "character"), "msg": f"must be one of {', '.join(names)}"}],
    )


def _loc_of(options: ContextQuery, name: str) -> list[str]:
    """Return the location of an option in the request."""
    return ["body" if isinstance(options, ContextOptions) else "query", name]


def _gather(
    source: Source,
    options: ContextQuery,
    own: Sequence[OwnSegment],
    pinned: Sequence[PinnedLine],
    render_options: RenderOptions,
    now: datetime,
) -> Parts:
    """Return everything that can go into the context."""
    row = source.row
    history = list(source.history)
    if options.draft is not None:
        history.append(_draft(row["head_seq"], options.draft, history, now))
    last = next((at for at in reversed(range(len(history))) if is_said(history[at])), None)
    newest = None if last is None or history[last].role != "user" else history.pop(last)
    contributions = [one for layer in source.contributed.values() for one in layer.segments]
    placement = placement_of(source.settings.pinned)
    segments = [build_pinned(pinned, placement)] if pinned and placement is not None else []
    # The instruction is cached, so it does not depend on the segments after the history, which change every turn.
    prefix = render_options.tables.prefix
    present = {one.name for one in segments}.union(one.segment for one in contributions if one.items) & prefix
    stamped = last is not None and source.settings.timestamps == "inline"
    segments += _word_service_segments(source, present, render_options.tables, now, stamped=stamped)
    segments += [
        Segment(given.name, given.text, count_tokens(given.text), given.role, after=given.after, depth=given.depth)
        for given in own
    ]
    return Parts(
        segments=segments,
        contributions=contributions,
        history=history,
        newest=newest,
        anchor_seq=row["anchor_seq"],
        edges=_list_edges(source, history),
        keeps_messages=source.settings.history.keep_messages if _is_overdue(source) else None,
    )


def _is_overdue(source: Source) -> bool:
    """Return whether the history has `max_messages` or more: a forced cut (`history/cut.py`) is still to come."""
    return source.history_messages >= source.settings.max_messages


def _word_service_segments(
    source: Source, present: Collection[str], tables: SegmentTables, now: datetime, *, stamped: bool
) -> list[Segment]:
    """Return the segments that the service makes from the line's row.

    `present` are the names of the memory segments before the history, which the instruction explains.
    """
    row, settings = source.row, source.settings
    texts_by_name = [
        ("system", row["system_prompt"] or ""),
        ("character", texts.word_characters(source.characters)),
        ("user", texts.word_user(row["user_persona"])),
        ("instruction", texts.word_instruction(settings.instruction, present, tables.instructions, stamped=stamped)),
    ]
    segments = [Segment(name, text, count_tokens(text)) for name, text in texts_by_name if text.strip()]
    if settings.time:
        text = texts.word_time(now, row["time_zone"])
        segments.append(Segment("time", text, count_tokens(text), cacheable=False))
    return segments


def _draft(head_seq: int, text: str, history: Sequence[HistoryMessage], now: datetime) -> HistoryMessage:
    """Return the draft as the user's next message, with the user's latest name in the history."""
    name = next((entry.name for entry in reversed(history) if entry.role == "user" and entry.name), None)
    return HistoryMessage(head_seq + 1, DRAFT_ID, "user", name, text, count_tokens(text), now.isoformat())


def _list_edges(source: Source, history: Sequence[HistoryMessage]) -> Sequence[int]:
    """Return the edges at which a trimmed history begins. After the last edge, it can begin at any message.

    There can be a hundred messages after a layer's last edge, for example in an open scene. If these were trimmed by
    message, the history would begin at another message in each turn. So every eighth seq after that edge is an edge,
    too, except among the last 16 messages.
    """
    match source.edge_kind:
        case "every_8":
            return [entry.seq for entry in history if entry.seq % 8 == 1]
        case "every_message":
            return [entry.seq for entry in history]
    edges = source.edges
    many = history[:-_LEFT_BY_STEPS]
    return [*edges, *every_nth_edge(max(edges, default=0) + 1, many[-1].seq if many else 0, 8)]


def _answer(
    ref: ChatRef,
    source: Source,
    options: ContextQuery,
    fitted: Fitted,
    max_tokens: int,
    over_budget: Sequence[Omission],
) -> dict[str, Any]:
    rendered = render(fitted.layout)
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
        "memo_window": _window_out(source, fitted),
        "breakpoints": rendered.breakpoints,
        "omitted": [*over_budget, *fitted.omitted],
        "recalled": (),
        "prefix_hash": rendered.prefix_hash,
    }


def _window_out(source: Source, fitted: Fitted) -> dict[str, Any]:
    """Return the field `memo_window`: how many memos the context contains, their range, and the gaps."""
    shown = [item for one in fitted.contributions if one.is_window for item in one.items]
    covered = [item.covers for item in shown if item.covers is not None]
    return {
        "memos": len(shown),
        "first_seq": min((first for first, _ in covered), default=None),
        "last_seq": max((last for _, last in covered), default=None),
        "gaps": join_ranges(sorted(gap for one in source.contributed.values() for gap in one.gaps)),
    }


def _head_of(row: Row) -> int:
    """Return the last seq that the context can contain: the head, or with `before` the seq before that message."""
    head_seq: int = row["head_seq"] if row["before_seq"] is None else row["before_seq"] - 1
    return head_seq


def _history_out(row: Row, fitted: Fitted) -> dict[str, Any]:
    sent = [entry.seq for entry in fitted.layout.entries]
    newest = fitted.layout.newest
    if newest is not None and isinstance(newest.of, HistoryMessage):
        sent.append(newest.of.seq)
    return {
        "anchor_seq": sent[0] if sent else row["anchor_seq"],
        "last_seq": sent[-1] if sent else _head_of(row),
        "messages": len(sent),
        "last_cut": orjson.Fragment(row["last_cut"]) if row["last_cut"] else None,
    }
