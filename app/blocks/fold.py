"""Builds the text of a block from the operations on it. Pure.

An operation is a `Known`: a stored statement with the rank of its scope. A lower rank is a nearer scope: chat,
character, user, tenant.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from app.blocks.bullets import LABEL, choose, make_operation
from app.knowledge.important import Important, choose_important, sort_by_age
from app.knowledge.known import Known

Label = Literal["persona", "user", "facts", "context"]
LABELS: Sequence[Label] = get_args(Label)
"""The labels of all blocks, in the order of the prompt."""

Operation = Literal["replace", "append", "search_replace"]
OPERATIONS: Sequence[Operation] = get_args(Operation)

MAX_CHARS = 2_000
"""The maximum length of a block."""

Fault = Literal["missing", "too_long"]


class Changed(NamedTuple):
    """The outcome of one operation.

    Attributes:
        text: The text that it makes, even if it is too long.
        fault: Why it does not apply: the text does not contain its pattern, or the new text is too long. None if it
            applies.

    """

    text: str
    fault: Fault | None = None


class Applied(NamedTuple):
    """An operation in the history of a block.

    Attributes:
        step: The operation.
        text: The text after it.
        fault: Why it did not apply and left the text as it was; None if it applied.

    """

    step: Known
    text: str
    fault: Fault | None = None

    @property
    def is_applied(self) -> bool:
        """Whether it applied."""
        return self.fault is None


class Block(NamedTuple):
    """A block that has a text from memories, or that at least one live operation has written.

    Attributes:
        label: Its label.
        text: Its text.
        log: The operations that build the text, from the one that begins it: those of wider scopes first, and in each
            scope the oldest first.
        memories: The ids of the memories that the text begins with, the oldest first. If there are any, the first
            operation of the log writes them; it is not stored.

    """

    label: str
    text: str
    log: Sequence[Applied]
    memories: Sequence[str] = ()

    @property
    def deciding(self) -> Known:
        """The newest operation of the nearest scope."""
        return self.log[-1].step

    @property
    def written(self) -> Sequence[Applied]:
        """The operations that are stored."""
        return self.log[1:] if self.memories else self.log

    @property
    def newest(self) -> Known:
        """The last operation that applied; the last one if none did."""
        return next((one.step for one in reversed(self.log) if one.is_applied), self.deciding)

    @property
    def edited(self) -> bool:
        """Whether a person changed what somebody else had written."""
        return any(one.step.edited for one in self.log if one.is_applied)

    def count_of(self, rank: int) -> int:
        """Return how many of the stored operations a scope has, given its rank."""
        return sum(one.step.rank == rank for one in self.written)


def change(text: str, operation: str | None, content: str, pattern: str | None) -> Changed:
    """Return the outcome of an operation on a text. `append` begins a new line, unless the text is empty."""
    if operation == "append":
        after = f"{text}\n{content}" if text else content
    elif operation == "search_replace" and pattern:
        if pattern not in text:
            return Changed(text, "missing")
        after = text.replace(pattern, content)
    else:
        after = content
    return Changed(after, "too_long" if len(after) > MAX_CHARS else None)


def apply(steps: Iterable[Known], text: str = "") -> list[Applied]:
    """Return the outcomes of operations, one after the other. One that does not apply leaves the text as it is.

    A deletion restores the text from before the first operation of its scope: the text of the wider scopes and of the
    memories that begin the block.
    """
    log = []
    rank, base = None, text
    for step in steps:
        if step.rank != rank:
            rank, base = step.rank, text
        written = change(text, step.operation, step.content or "", step.pattern)
        changed = Changed(base) if is_deletion(step) else written
        text = text if changed.fault else changed.text
        log.append(Applied(step, text, changed.fault))
        if step.origin == "extractive":
            rank = None  # a deletion keeps the text from memories: it belongs to no scope
    return log


def is_deletion(step: Known) -> bool:
    """Return whether an operation takes back what its scope has written into the block."""
    return step.operation == "replace" and step.content is None


def drop_deleted(known: Iterable[Known]) -> list[Known]:
    """Return the operations that no deletion takes back: wider scopes first, and in a scope the older ones first."""
    kept: list[Known] = []
    for step in sorted(known, key=order):
        if is_deletion(step):
            deleted = (step.rank, step.character, step.key)
            kept = [one for one in kept if (one.rank, one.character, one.key) != deleted]
        else:
            kept.append(step)
    return kept


def begin(steps: Sequence[Known], memories: Sequence[Important]) -> tuple[Known | None, Sequence[Important]]:
    """Return the operation with which memories begin a block, and the memories in it; None if no memory fits.

    `steps` are the operations that follow it, and `memories` has the most important first. The operations have
    precedence: the least important memories are left out until no operation makes the text too long.
    """
    chosen = choose(memories)
    while chosen:
        made = make_operation(chosen)
        if all(one.fault != "too_long" for one in apply(steps, made.content or "")):
            return made, chosen
        chosen = chosen[:-1]
    return None, ()


def fold(known: Iterable[Known], character: str | None, important: Iterable[Important] = ()) -> Mapping[str, Block]:
    """Return the blocks that have any operation, by label, in the order of the labels.

    The operations of wider scopes come first, and in a scope the older ones; deleted operations are left out. The text
    begins with the last `replace` in this order. So a `replace` in a near scope hides the texts of wider scopes, and
    the other operations build on these texts. Operations in the scope `character` count only if they are about
    `character`; None is no character.

    The block `facts` begins with the important memories that count, unless it has a `replace`.
    """
    of_label: dict[str, list[Known]] = {}
    for step in drop_deleted(known):
        if step.character in (None, character):
            log = of_label.setdefault(step.key, [])
            if step.operation == "replace":
                log.clear()
            log.append(step)
    memories: Sequence[Important] = ()
    facts = of_label.get(LABEL, [])
    if not facts or facts[0].operation != "replace":
        made, memories = begin(facts, choose_important(important, character))
        if made is not None:
            of_label[LABEL] = [made, *facts]
    ids = {LABEL: [one.key for one in sort_by_age(memories)]}
    found = {label: apply(log) for label, log in of_label.items()}
    return {
        label: Block(label, found[label][-1].text, found[label], ids.get(label, ()))
        for label in LABELS
        if label in found
    }


def order(step: Known) -> tuple[Any, ...]:
    """Return the sort key of an operation: wider scopes first, and in a scope the older ones first."""
    return -step.rank, step.learnt_us, step.statement_id
