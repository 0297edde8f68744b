"""Reads core blocks, and writes, edits and deletes them for people; `tools.py` has the tool of the characters.

The text of a block is not stored: it is built from the stored operations on it (`fold.py`). An operation belongs to a
scope: a chat, a user with one character, a user, or the tenant. Blocks of all scopes but the chat's are called wide.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.blocks import queries
from app.blocks.bullets import LABEL
from app.blocks.errors import BlockNotFound, BlockTooLong, PatternNotFound
from app.blocks.fold import LABELS, MAX_CHARS, Applied, Block, Changed, apply, change, fold, list_with_memories, order
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.kit.db import DbSession, defer
from app.knowledge import reading
from app.knowledge.important import choose_important
from app.knowledge.known import Known
from app.knowledge.reading import Value, Viewpoint, view_chat
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, lock_scope, set_by_person

NAME = "blocks"
KIND = "block"

MAX_OPERATIONS = 50
"""The maximum number of operations of one scope that build the text of a block, so that reads stay fast. At the
maximum, a tool must write the whole text; for an edit of a person, `_edit` itself stores the whole text."""


class Edit(NamedTuple):
    """An operation on a block.

    Attributes:
        label: The block's label.
        operation: One of `fold.OPERATIONS`.
        content: What it writes.
        pattern: What `search_replace` looks for; None for the other operations.

    """

    label: str
    operation: str
    content: str
    pattern: str | None = None

    def on(self, text: str) -> Changed:
        """Return the outcome of the operation on a text."""
        return change(text, self.operation, self.content, self.pattern)


async def list_blocks(db_session: DbSession, view: Viewpoint, *, with_open: bool = False) -> Mapping[str, Block]:
    """Return the blocks that somebody has written into or that begin with memories, by label, in the labels' order.

    With `with_open`, they contain what tool calls wrote, even if the reply of the call is not stored yet.
    """
    log = await reading.list_log(db_session, view, KIND, with_open=with_open)
    return fold(log, view.character, await queries.list_important(db_session, view))


async def get_block(db_session: DbSession, view: Viewpoint, label: str) -> Block:
    """Return a block. Raises BlockNotFound for an unknown label, and for a block without operations and memories."""
    check_label(label)
    block = (await list_blocks(db_session, view)).get(label)
    if block is None:
        raise BlockNotFound(f"Nothing was written into the block {label!r} yet.")
    return block


async def list_texts(db_session: DbSession, view: Viewpoint, label: str) -> tuple[list[Value], Mapping[UUID, Applied]]:
    """Return the operations on a block in each scope of the view, newest first, and their outcomes by their ids.

    The outcome of an operation is computed from the present texts of the wider scopes. For the block `facts`, the
    operations that write memories into it are listed too (`list_with_memories`). The time of such an operation is the
    time of its newest memory. Raises BlockNotFound.
    """
    check_label(label)
    values = await reading.list_values(db_session, view, KIND, label)
    steps: Sequence[Known] = sorted((one.known for one in values), key=order)
    made: Sequence[Known] = ()
    if label == LABEL:
        important = choose_important(await queries.list_important(db_session, view), view.character)
        steps, made = list_with_memories(steps, important)
        values = sorted([*values, *(Value(one, None) for one in made)], key=_age, reverse=True)
    if not values:
        raise BlockNotFound(f"Nothing was written into the block {label!r} yet.")
    return values, {one.step.statement_id: one for one in apply(steps, made).outcomes}


async def write_in_chat(db_session: DbSession, ref: ChatRef, label: str, text: str, *, now: datetime) -> bool:
    """Write the whole text of a chat's block for a person; return whether the chat had none. Raises ChatNotFound."""
    check_label(label)
    head = await lock_head(db_session, ref)
    created = await _write(db_session, ScopeKey.of_chat(ref.tenant, ref.key), label, text, now=now)
    defer(db_session, LayerChanged(head, NAME))
    return created


async def write_in_scope(db_session: DbSession, scope: ScopeKey, label: str, text: str, *, now: datetime) -> bool:
    """Write the whole text of a block of a wide scope for a person; return whether the scope had none."""
    check_label(label)
    await lock_scope(db_session, scope)
    return await _write(db_session, scope, label, text, now=now)


async def delete_in_chat(db_session: DbSession, ref: ChatRef, label: str, *, now: datetime) -> None:
    """Take back, for a person, what was written into a chat's block. Raises ChatNotFound, BlockNotFound."""
    check_label(label)
    head = await lock_head(db_session, ref)
    await _delete(db_session, ScopeKey.of_chat(ref.tenant, ref.key), label, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def delete_in_scope(db_session: DbSession, scope: ScopeKey, label: str, *, now: datetime) -> None:
    """Take back, for a person, what was written into a block of a wide scope. Raises BlockNotFound."""
    check_label(label)
    await lock_scope(db_session, scope)
    await _delete(db_session, scope, label, now=now)


async def edit_in_chat(
    db_session: DbSession, ref: ChatRef, edit: Edit, *, character: str | None, now: datetime
) -> None:
    """Edit the text of a block as a chat sees it, for a person. A text of a wider scope stays as it is there.

    `character` is the character whose block is meant; by default, the only active character of the chat. Raises
    ChatNotFound, Invalid, BlockNotFound, PatternNotFound, BlockTooLong.
    """
    check_label(edit.label)
    head = await lock_head(db_session, ref)
    await _edit(db_session, await view_chat(db_session, ref, character=character), edit, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def edit_in_scope(db_session: DbSession, scope: ScopeKey, edit: Edit, *, now: datetime) -> None:
    """Edit the text of a block of a wide scope for a person. Raises BlockNotFound, PatternNotFound, BlockTooLong."""
    check_label(edit.label)
    await lock_scope(db_session, scope)
    await _edit(db_session, Viewpoint.of_scope(scope), edit, now=now)


def check_label(label: str) -> None:
    """Raise BlockNotFound if no block has the label."""
    if label not in LABELS:
        raise BlockNotFound(f"There is no block {label!r}; the blocks are {', '.join(LABELS)}.")


def say(edit: Edit) -> Said:
    """Return the statement that stores an operation."""
    return Said(KIND, edit.label, edit.content, 0, edit.operation, edit.pattern)


async def _write(db_session: DbSession, scope: ScopeKey, label: str, text: str, *, now: datetime) -> bool:
    log = await reading.list_log(db_session, Viewpoint.of_scope(scope), KIND)
    held = fold(log, scope.character or None).get(label)
    # If the block already has this text, and a person wrote it, the text is not stored again. There is one exception:
    # a tool has written a later text for a reply that was then taken back. If the reply returned, the tool's text would
    # be the newest, so the person's text is stored again.
    is_written = held is not None and _is_written(held.log, text)
    if held is None or not is_written or not await reading.is_newest(db_session, scope, KIND, held.deciding):
        edited = held is not None and _changes_others(held)
        await set_by_person(db_session, scope, say(Edit(label, "replace", text)), edited=edited, now=now)
    return held is None


async def _delete(db_session: DbSession, scope: ScopeKey, label: str, *, now: datetime) -> None:
    log = await reading.list_log(db_session, Viewpoint.of_scope(scope), KIND)
    held = fold(log, scope.character or None).get(label)
    if held is None:
        raise BlockNotFound(f"Nothing was written into the block {label!r} of the scope {scope.name!r}.")
    deletion = Said(KIND, label, None, 0, "replace")
    await set_by_person(db_session, scope, deletion, edited=_changes_others(held), now=now)


def _is_written(log: Sequence[Applied], text: str) -> bool:
    """Return whether a person's whole text begins the log, a person's operation ends it, and the result is `text`."""
    first, last = log[0].step, log[-1].step
    return first.operation == "replace" and first.origin == last.origin == "person" and log[-1].text == text


def _age(value: Value) -> tuple[int, UUID]:
    return value.known.learnt_us, value.known.statement_id


def _changes_others(held: Block) -> bool:
    return held.edited or any(one.step.origin != "person" for one in held.log)


async def _edit(db_session: DbSession, view: Viewpoint, edit: Edit, *, now: datetime) -> None:
    held = (await list_blocks(db_session, view)).get(edit.label)
    changed = edit.on(held.text if held else "")
    if changed.fault == "missing":
        raise PatternNotFound(f"The block {edit.label!r} does not contain the text of `search_pattern`.")
    if changed.fault == "too_long":
        raise BlockTooLong(
            f"The block {edit.label!r} would have {len(changed.text):,} characters; the maximum is {MAX_CHARS:,}."
        )
    edited = held is not None and _changes_others(held)
    if held is not None and held.count_of(view.scope.rank) >= MAX_OPERATIONS:
        if edit.label == LABEL and not held.is_written_by_person:
            # First store the text without this edit, as a `replace` of the service. A `replace` of a person would keep
            # later memories out of the block, which the person did not ask for.
            whole = say(Edit(edit.label, "replace", held.text))
            await set_by_person(db_session, view.scope, whole, edited=False, now=now, origin="extractive")
        else:
            edit = Edit(edit.label, "replace", changed.text)
    await set_by_person(db_session, view.scope, say(edit), edited=edited, now=now)
