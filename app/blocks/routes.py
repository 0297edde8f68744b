"""The HTTP routes of core blocks: those of a chat, and the same ones of each wider scope."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from app.blocks import book
from app.blocks.book import Edit
from app.blocks.fold import LABELS, Applied, Block
from app.blocks.schemas import BlockEdit, BlockIn, BlockOut, FormerBlockOut
from app.chats.deps import Line, ReadingChat, WritingChat
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import OrjsonResponse, PathText
from app.knowledge.deps import WIDE_SCOPES, OfCharacter, WideScope
from app.knowledge.history import make_history_page
from app.knowledge.reading import Viewpoint, list_sources, view_chat
from app.knowledge.scopes import ScopeKey

Label = Annotated[
    PathText, Path(max_length=100, description=f"The block's label: {', '.join(LABELS)}.", examples=["user"])
]

_TAGS: list[Any] = ["knowledge"]

router = APIRouter(prefix="/v1/chats/{chat_id}/blocks", tags=_TAGS, route_class=KeyedRoute)


@router.get("", response_model=Page[BlockOut])
async def list_blocks(
    ref: ReadingChat,
    db_session: Db,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the core blocks as they hold for a chat, in the order of the prompt.

    A block is written as a whole or edited. A text that was written as a whole hides the texts of wider scopes. An edit
    is applied to the text of the wider scope, but only this chat sees its result: if the chat appends a sentence, it
    has the text of the scope `user` and then the sentence. The service itself writes memories into the block `facts`:
    the 50 most important ones, chosen again whenever one of importance 0.7 or more arrives. A block into which nothing
    was written is left out.
    """
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _list(db_session, view, limit, cursor)


@router.get("/{label}", response_model=BlockOut)
async def get_block(
    ref: ReadingChat, label: Label, db_session: Db, character: OfCharacter = None, line: Line = None
) -> Response:
    """Read a core block as it holds for a chat."""
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _get(db_session, view, label)


@router.get("/{label}/history", response_model=Page[FormerBlockOut])
async def list_block_texts(
    ref: ReadingChat,
    label: Label,
    db_session: Db,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the operations on a core block, newest first.

    The list has the operations of all scopes that the chat sees.
    """
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _list_texts(db_session, view, label, limit, cursor)


@router.put("/{label}", response_model=BlockOut, responses={201: {"model": BlockOut}})
async def write_block(ref: WritingChat, label: Label, body: BlockIn, db_session: Db, clock: Now) -> Response:
    """Write the whole text of a core block of a chat. It holds on all lines.

    Returns 201 if the chat itself had no such block.
    """
    created = await book.write_in_chat(db_session, ref, label, body.text, now=clock())
    await db_session.run_deferred()
    return await _get(db_session, await view_chat(db_session, ref), label, status=201 if created else 200)


@router.delete("/{label}", status_code=204)
async def delete_block(ref: WritingChat, label: Label, db_session: Db, clock: Now) -> None:
    """Delete what was written into a core block of a chat.

    The block then has the text of wider scopes again, and the service can write memories into the block `facts` again.
    The former texts stay in the block's history. If nothing was written into the block of the chat itself, the answer
    is a 404.
    """
    await book.delete_in_chat(db_session, ref, label, now=clock())


@router.post("/{label}/edit", response_model=BlockOut)
async def edit_block(
    ref: WritingChat, label: Label, body: BlockEdit, db_session: Db, clock: Now, character: OfCharacter = None
) -> Response:
    """Edit the text of a core block as the chat sees it. The texts of wider scopes stay as they are.

    If the text does not contain `search_pattern`, or would become too long, the answer is a 409.
    """
    await book.edit_in_chat(db_session, ref, _edit_of(label, body), character=character, now=clock())
    await db_session.run_deferred()
    return await _get(db_session, await view_chat(db_session, ref, character=character), label)


def _make_router(of: WideScope) -> APIRouter:
    """Return the routes of a wider scope."""
    name, words = of.name, of.words
    wide = APIRouter(prefix=f"{of.prefix}/blocks", tags=_TAGS, route_class=KeyedRoute)

    @wide.get("", response_model=Page[BlockOut], name=f"list_{name}_blocks", summary=f"List the core blocks of {words}")
    async def list_wide_blocks(
        scope: Annotated[ScopeKey, of.reading], db_session: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
    ) -> Response:
        """List the blocks that were written in the scope, in the order of the prompt.

        The block `facts` is also listed if the service has put memories of the scope into it.
        """
        return await _list(db_session, Viewpoint.of_scope(scope), limit, cursor)

    @wide.get("/{label}", response_model=BlockOut, name=f"get_{name}_block", summary=f"Read a core block of {words}")
    async def get_wide_block(scope: Annotated[ScopeKey, of.reading], label: Label, db_session: Db) -> Response:
        """Read a block of the scope."""
        return await _get(db_session, Viewpoint.of_scope(scope), label)

    @wide.get(
        "/{label}/history",
        response_model=Page[FormerBlockOut],
        name=f"list_{name}_block_texts",
        summary=f"List the texts of a core block of {words}",
    )
    async def list_wide_block_texts(
        scope: Annotated[ScopeKey, of.reading],
        label: Label,
        db_session: Db,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        """List the operations on a block of the scope, newest first."""
        return await _list_texts(db_session, Viewpoint.of_scope(scope), label, limit, cursor)

    @wide.put(
        "/{label}",
        response_model=BlockOut,
        responses={201: {"model": BlockOut}},
        name=f"write_{name}_block",
        summary=f"Write a core block of {words}",
    )
    async def write_wide_block(
        scope: Annotated[ScopeKey, of.writing], label: Label, body: BlockIn, db_session: Db, clock: Now
    ) -> Response:
        """Write the whole text of a block. Returns 201 if the scope had no such block.

        The text holds in all chats of the scope, except where the whole block was written in a nearer scope.
        """
        created = await book.write_in_scope(db_session, scope, label, body.text, now=clock())
        return await _get(db_session, Viewpoint.of_scope(scope), label, status=201 if created else 200)

    @wide.delete("/{label}", status_code=204, name=f"delete_{name}_block", summary=f"Delete a core block of {words}")
    async def delete_wide_block(
        scope: Annotated[ScopeKey, of.writing], label: Label, db_session: Db, clock: Now
    ) -> None:
        """Delete what was written into a block of the scope.

        Its chats then have the text of wider scopes again, and the service can write memories into the block `facts`
        again. The former texts stay in the block's history. If nothing was written into the block, the answer is a 404.
        """
        await book.delete_in_scope(db_session, scope, label, now=clock())

    @wide.post(
        "/{label}/edit", response_model=BlockOut, name=f"edit_{name}_block", summary=f"Edit a core block of {words}"
    )
    async def edit_wide_block(
        scope: Annotated[ScopeKey, of.writing], label: Label, body: BlockEdit, db_session: Db, clock: Now
    ) -> Response:
        """Edit the text of a block of the scope.

        If the text does not contain `search_pattern`, or would become too long, the answer is a 409.
        """
        await book.edit_in_scope(db_session, scope, _edit_of(label, body), now=clock())
        return await _get(db_session, Viewpoint.of_scope(scope), label)

    return wide


routers = (router, *(_make_router(scope) for scope in WIDE_SCOPES))


async def _list(db_session: DbSession, view: Viewpoint, limit: int, cursor: str | None) -> Response:
    start = decode_cursor(cursor, int)[0] if cursor else 0
    blocks = list((await book.list_blocks(db_session, view)).values())
    found = [(at, block) for at, block in enumerate(blocks, 1) if at > start][: limit + 1]
    items = [await _block_out(db_session, view, block) for _, block in found[:limit]]
    return OrjsonResponse(make_page(items, [(at,) for at, _ in found]))


async def _get(db_session: DbSession, view: Viewpoint, label: str, *, status: int = 200) -> Response:
    block = await book.get_block(db_session, view, label)
    return OrjsonResponse(await _block_out(db_session, view, block), status_code=status)


async def _list_texts(db_session: DbSession, view: Viewpoint, label: str, limit: int, cursor: str | None) -> Response:
    texts, outcomes = await book.list_texts(db_session, view, label)
    return OrjsonResponse(make_history_page(texts, lambda step: _step_out(outcomes[step.statement_id]), limit, cursor))


def _edit_of(label: str, body: BlockEdit) -> Edit:
    return Edit(label, body.operation, body.content, body.search_pattern or None)


async def _block_out(db_session: DbSession, view: Viewpoint, block: Block) -> dict[str, Any]:
    sources = await list_sources(db_session, view, [one.step for one in block.written if one.is_applied])
    return {
        "id": block.newest.statement_id,
        "label": block.label,
        "text": block.text,
        "left_out": block.left_out,
        "scope": block.deciding.scope,
        "character": block.deciding.character,
        "origin": block.newest.origin,
        "edited": block.edited,
        "sources": [
            *(f"memory:{memory_id}" for memory_id in block.memories),
            *dict.fromkeys(source for of_one in sources.values() for source in of_one),
        ],
        "created_at": block.newest.learnt_at,
    }


def _step_out(applied: Applied) -> dict[str, Any]:
    step = applied.step
    return {
        "operation": step.operation,
        "content": step.content,
        "search_pattern": step.pattern,
        "text": applied.text,
        "applied": applied.is_applied,
    }
