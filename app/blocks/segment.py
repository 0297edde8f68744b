"""The contribution of core blocks to a context. Pure."""

import orjson

from app.blocks.fold import LABELS, Block, fold
from app.blocks.settings import BlockSettings
from app.chats.budgets import choose_newest_first
from app.kit.tokens import count_tokens
from app.knowledge.important import Important
from app.knowledge.known import Known
from app.layers.contribution import (
    Contributed,
    Contribution,
    Item,
    Placement,
    SegmentSpec,
    TrimGroup,
    View,
    placement_of,
)
from app.layers.text_cache import TextCache

_HEADING = "## Core memory"

SEGMENT = SegmentSpec(
    "blocks",
    instruction='"Core memory" is what you always keep in mind: who you are ("persona"), who the other is ("user"), '
    'what is certain ("facts"), and how things are at present ("context"). If the conversation below says otherwise, '
    "the conversation is right.",
)


_contributed = TextCache[Contributed](max_chars=4_000_000)  # the blocks of a few hundred chats


def contribute(view: View) -> Contributed:
    """Return the blocks that have a text, in the order of their labels; those that exceed the budget are left out.

    Lines of wider scopes that gave way to nearer texts count as left out, too.
    """
    if view.queried is None:
        return Contributed()
    settings = BlockSettings.of(view.settings)
    placement = placement_of(settings)
    if placement is None:
        return Contributed()
    limit = settings.budget.tokens(view.settings.context_tokens) if settings.budget else None
    given = (view.character, placement, limit)
    return _contributed.get(view.queried, lambda: _contribute(view.queried, *given), given=given)


def _contribute(queried: str, character: str | None, placement: Placement, limit: int | None) -> Contributed:
    log, important = orjson.loads(queried)
    found = fold([Known(*row) for row in log], character, [Important(*row) for row in important])
    blocks = [block for block in found.values() if block.text.strip()]
    if not blocks:
        return Contributed()
    items = [_item(block) for block in reversed(blocks)]
    kept = choose_newest_first([item.tokens for item in items], limit)
    over = [item for index, item in enumerate(items) if index not in kept]
    lines = [
        Item("", count_tokens(block.left_out), name=f"block {block.label}: lines of wider scopes")
        for block in blocks
        if block.left_out
    ]
    shown = tuple([item for index, item in enumerate(items) if index in kept])
    return Contributed((Contribution("blocks", shown, _HEADING, (*over, *lines), placement),))


def _item(block: Block) -> Item:
    text = f"### {block.label}\n\n{block.text}"  # the tool needs the label
    name = f"block {block.label}"
    at = [str(label) for label in LABELS].index(block.label)
    return Item(
        text,
        count_tokens(text),
        (f"block:{block.label}", *[f"memory:{memory_id}" for memory_id in block.memories]),
        name,
        TrimGroup(len(LABELS) - at, name),
        order=(at,),
    )
