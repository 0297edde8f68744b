"""The contribution of facts to a context. Pure."""

from uuid import UUID

from app.chats.budgets import choose_newest_first
from app.facts.settings import FactSettings
from app.facts.wording import HEADING, word_fact
from app.knowledge.known import Known, choose_nearest, read_known
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, TrimGroup, View, place

SEGMENT = SegmentSpec(
    "facts",
    instruction='Under "Facts" is what is known for certain. If the conversation below says otherwise, the '
    "conversation is right.",
)


def contribute(view: View) -> Contributed:
    """Return the facts that hold, the oldest first; if they exceed the budget, the newest are kept."""
    settings = FactSettings.of(view.settings)
    placement = place(settings)
    if placement is None or view.queried is None:
        return Contributed()
    held = choose_nearest(read_known(view.queried), view.character).values()
    facts = sorted(held, key=lambda fact: (fact.learnt_at, fact.statement_id))
    limit = settings.budget.tokens(view.settings.context_tokens) if settings.budget else None
    kept = choose_newest_first([fact.tokens for fact in facts], limit)
    items = [_item(order, fact) for order, fact in enumerate(facts)]
    left_out = [item for order, item in enumerate(items) if order not in kept]
    shown = [item for order, item in enumerate(items) if order in kept]
    if not items:
        return Contributed()
    return Contributed((Contribution("facts", shown, HEADING, left_out, placement),))


def _item(order: int, fact: Known) -> Item:
    name = f"fact {fact.key}"
    return Item(
        word_fact(fact.key, fact.content or ""),
        fact.tokens,
        (source_of(fact.statement_id),),
        name,
        TrimGroup(order, name),
        order=(order,),
    )


def source_of(statement_id: UUID) -> str:
    """Return the name of a fact in the sources of a context."""
    return f"fact:{statement_id}"
