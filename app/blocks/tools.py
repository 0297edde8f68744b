"""The tool with which a character edits the core blocks."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.bindings.service import Call, Made, find_retry
from app.blocks.book import MAX_OPERATIONS, NAME, Edit, list_blocks, say
from app.blocks.fold import MAX_CHARS, Block, Label, Operation
from app.blocks.schemas import BlockText, check_operation
from app.chats.chat_lock import lock_head
from app.chats.hashes import identity
from app.kit.wire import NullAs
from app.knowledge.learning import learn, lock_scopes_of_tool
from app.knowledge.reading import view_chat
from app.knowledge.scopes import ScopeKey
from app.layers.tool import Answer, Tool, ToolCall, refused, wrote


class MemoryBlockUpdate(BaseModel):
    """The arguments of `memory_block_update`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"block": "user", "operation": "append", "content": "She has a brother, Tomas."}]
        },
    )

    block: Annotated[
        Label,
        Field(
            description="`persona`: who you are. `user`: who the other is. `facts`: what is certain. `context`: how "
            "things are at present."
        ),
    ]
    operation: Annotated[
        Operation,
        Field(
            description="`append` adds a line at the end; `search_replace` replaces every occurrence of "
            "`search_pattern`; `replace` writes the whole block."
        ),
    ]
    content: Annotated[
        BlockText,
        Field(description=f"The new text, in a few words. A whole block has at most {MAX_CHARS:,} characters."),
    ]
    search_pattern: Annotated[BlockText, NullAs("")] = Field(
        "", description="Only with `search_replace`: the words to replace, copied exactly from the block."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_operation(self.operation, self.content, self.search_pattern)
        return self


async def _update(call: ToolCall, arguments: MemoryBlockUpdate) -> Answer:
    db_session = call.db_session
    edit = Edit(arguments.block, arguments.operation, arguments.content, arguments.search_pattern or None)
    head = await lock_head(db_session, call.ref)
    view = await view_chat(db_session, call.ref, character=call.character)
    learning = await lock_scopes_of_tool(db_session, call.ref, view.character)
    held = (await list_blocks(db_session, view, with_open=True)).get(edit.label)
    scope = learning.choose_scope(held.deciding if held and held.written else None)
    words = identity("block", "\0".join([edit.label, edit.operation, edit.content, edit.pattern or ""]))
    made = Call(NAME, MEMORY_BLOCK_UPDATE.name, view.character or "", words, call.target)
    fault = _refuse(edit, held, scope)
    if fault is not None:
        retried = await find_retry(db_session, head, made, now=call.now)
        return refused(fault) if retried is None else Answer(_word_repeated(edit, held, retried), "repeated")
    bound = await learn(db_session, head, scope, made, say(edit), now=call.now)
    held = (await list_blocks(db_session, view, with_open=True)).get(edit.label)
    return wrote(_word_repeated(edit, held, bound) if bound.is_retry else _word_written(edit, held), bound)


def _word_written(edit: Edit, held: Block | None) -> str:
    return f"It is written. {_word_text(edit, held)}"


def _word_repeated(edit: Edit, held: Block | None, made: Made) -> str:
    """Return the answer to a repeated call. What it wrote can have been changed or deleted since.

    If a person has hidden the reply, the block does not show what the call wrote, so its absence is no deletion.
    """
    holds = _word_text(edit, held)
    if held is None and (made.is_open or made.matches):
        holds = f"The block {edit.label!r} was deleted since, so it holds nothing. Do not repeat the call."
    return f"This call was made before, so nothing is written again. {holds}"


def _word_text(edit: Edit, held: Block | None) -> str:
    text = held.text if held else ""
    reads = f"reads:\n{text}\n" if text else "is empty. "
    return f"The block {edit.label!r} {reads}Go on with the story; do not mention the note."


def _refuse(edit: Edit, held: Block | None, scope: ScopeKey) -> str | None:
    """Return why an operation cannot be stored, for the model, or None."""
    text = held.text if held else ""
    rewrite = f"Call {MEMORY_BLOCK_UPDATE.name} with the operation `replace` and the whole text of the block"
    changed = edit.on(text)
    if changed.fault == "missing":
        reads = f"does not contain these words. It reads:\n{text}" if text else "is empty. Use `append` or `replace`."
        return f"The block {edit.label!r} {reads}\nSo nothing has changed."
    if changed.fault == "too_long":
        return (
            f"The block {edit.label!r} would have {len(changed.text):,} characters; the maximum is {MAX_CHARS:,}. "
            f"So nothing has changed. {rewrite}, in fewer words."
        )
    if held is not None and edit.operation != "replace" and held.count_of(scope.rank) >= MAX_OPERATIONS:
        return (
            f"The block {edit.label!r} consists of {MAX_OPERATIONS} edits, the maximum, so nothing has changed. "
            f"{rewrite}, with this change in it."
        )
    return None


MEMORY_BLOCK_UPDATE = Tool(
    name="memory_block_update",
    description=(
        "Edit one of the blocks of your core memory, which you always have in front of you. Call it when something "
        "lasting about you, the other or the situation has changed, or when a block is wrong. Do not call it for what "
        "happens in a scene, for moods or guesses."
    ),
    arguments=MemoryBlockUpdate,
    example={"block": "user", "operation": "append", "content": "…"},
    run=_update,
)
