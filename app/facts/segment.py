"""The contribution of facts to a context. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import orjson

from app.chats.budgets import choose_newest_first
from app.chats.settings import Scope
from app.facts.settings import FactSettings
from app.facts.wording import HEADING, word_fact
from app.knowledge.known import SCOPES, Known, choose_nearest
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

SEGMENT = SegmentSpec(
    "facts",
    instruction='"Facts" is what is known for certain. If the conversation below says otherwise, the '
    "conversation is right.",
)

FACTS_IN_GROUP = 10
"""The number of facts that are trimmed together, the oldest ones first."""

_contributed = TextCache[Contributed](max_chars=4_000_000)  # the facts of a few hundred chats


def contribute(view: View) -> Contributed:
    """Return the facts that hold, the oldest first; if they exceed the budget, the newest are kept."""
    if view.queried is None:
        return Contributed()
    settings = FactSettings.of(view.settings)
    placement = placement_of(settings)
    if placement is None:
        return Contributed()
    limit = settings.budget.tokens(view.settings.context_tokens) if settings.budget else None
    given = (view.character, placement, limit)
    return _contributed.get(view.queried, lambda: _contribute(view.queried, *given), given=given)


def _contribute(queried: str, character: str | None, placement: Placement, limit: int | None) -> Contributed:
    facts = list(choose_nearest(_read(queried), character).values())
    if not facts:
        return Contributed()
    facts.sort(key=lambda fact: (fact.learnt_us, fact.statement_id))
    kept = choose_newest_first([fact.tokens for fact in facts], limit)
    first_kept = min(kept, default=len(facts))
    left_out = [Item("", fact.tokens, name=f"fact {fact.key}") for fact in facts[:first_kept]]
    shown = [_make_item(facts[at : at + FACTS_IN_GROUP], at) for at in range(first_kept, len(facts), FACTS_IN_GROUP)]
    return Contributed((Contribution("facts", tuple(shown), HEADING, tuple(left_out), placement),))


def _make_item(facts: Sequence[Known], at: int) -> Item:
    """Return the item of facts that are trimmed together; `at` is the index of the first of them."""
    lines = "\n".join([word_fact(fact.key, fact.content or "") for fact in facts])
    tokens = sum([fact.tokens for fact in facts])
    group = TrimGroup(at, f"facts {facts[0].key} – {facts[-1].key}")
    return Item(lines, tokens, tuple([source_of(fact.statement_id) for fact in facts]), "", group, order=(at,))


def _read(queried: str) -> Iterator[Known]:
    """Yield the statements in the result of a subquery of `queries.py`."""
    found = orjson.loads(queried)
    for rank, character, key, statement_id, content, tokens, learnt_us in found["rows"] or ():
        yield Known(rank, character, key, statement_id, content, tokens, "", False, learnt_us)
    for character, rows in found.get("character") or ():
        yield from _read_cached(rows, "character", character)
    wide: Sequence[Scope] = ("user", "global")
    for scope in wide:
        yield from _read_cached(found.get(scope) or (), scope, None)


def _read_cached(rows: Sequence[Sequence[Any]], scope: Scope, character: str | None) -> Iterator[Known]:
    rank = SCOPES.index(scope)
    for key, statement_id, content, tokens, learnt_us in rows:
        yield Known(rank, character, key, statement_id, content, tokens, "", False, learnt_us)


def source_of(statement_id: UUID | str) -> str:
    """Return the name under which a context lists a fact among its sources."""
    return f"fact:{statement_id}"
