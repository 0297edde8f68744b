"""The text of a block, from the operations on it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

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
        is_applied: Whether it applied; otherwise it left the text as it was.

    """

    step: Known
    text: str
    is_applied: bool


class Block(NamedTuple):
    """A block that at least one live operation has written.

    Attributes:
        label: Its label.
        text: Its text.
        log: The operations from the one on that the text begins with, the oldest first, those of wider scopes first.

    """

    label: str
    text: str
    log: Sequence[Applied]

    @property
    def deciding(self) -> Known:
        """The newest operation of the nearest scope."""
        return self.log[-1].step

    @property
    def newest(self) -> Known:
        """The last operation that applied; the last one if none did."""
        return next((one.step for one in reversed(self.log) if one.is_applied), self.deciding)

    @property
    def edited(self) -> bool:
        """Whether a person changed what somebody else had written."""
        return any(one.step.edited for one in self.log if one.is_applied)

    def count_of(self, rank: int) -> int:
        """Return how many of the operations a scope has, given its rank."""
        return sum(one.step.rank == rank for one in self.log)


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
    """Return the outcomes of operations, one after the other. Those that do not apply leave the text as it is."""
    log = []
    for step in steps:
        changed = change(text, step.operation, step.content or "", step.pattern)
        text = text if changed.fault else changed.text
        log.append(Applied(step, text, changed.fault is None))
    return log


def fold(known: Iterable[Known], character: str | None) -> Mapping[str, Block]:
    """Return the blocks that have any operation, by label, in the order of the labels.

    The operations of wider scopes come first, and in a scope the older ones. The text begins with the last `replace`
    in this order. So a `replace` in a near scope hides the texts of wider ones, and other operations build on them. Of
    the scope `character`, only the operations about the given character count; None is no character.
    """
    of_label: dict[str, list[Known]] = {}
    for step in sorted(known, key=order):
        if step.character in (None, character):
            log = of_label.setdefault(step.key, [])
            if step.operation == "replace":
                log.clear()
            log.append(step)
    found = {label: apply(log) for label, log in of_label.items()}
    return {label: Block(label, found[label][-1].text, found[label]) for label in LABELS if label in found}


def order(step: Known) -> tuple[Any, ...]:
    """Return the sort key of an operation: wider scopes first, and in a scope the older ones."""
    return -step.rank, step.learnt_us, step.statement_id
