"""Builds the text of a block from the operations on it. Pure.

An operation is a `Known`: a stored statement with the rank of its scope, or the operation that writes memories into the
block, which is not stored (`bullets.make_operation`). A lower rank is a nearer scope: chat, character, user, tenant.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
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


class Log(NamedTuple):
    """The outcomes of operations, and the lines of wider scopes that were left out to make room for nearer scopes."""

    outcomes: Sequence[Applied]
    left_out: str


class Block(NamedTuple):
    """A block with at least one live operation, or with lines that are made from memories.

    Attributes:
        label: Its label.
        text: Its text.
        log: The operations that build the text: those of wider scopes first, and in each scope the oldest first.
            Operations before the last `replace` are left out.
        memories: The ids of the memories that have a line in the text, the oldest first.
        made: The operation of the log that writes these lines, which is not stored; None if there are none.
        left_out: The lines of wider scopes that are not in the text, because the nearer operations need their room.

    """

    label: str
    text: str
    log: Sequence[Applied]
    memories: Sequence[str] = ()
    made: Known | None = None
    left_out: str = ""

    @property
    def deciding(self) -> Known:
        """The newest stored operation of the nearest scope; if none is stored, the operation that writes memories."""
        return (self.written or self.log)[-1].step

    @property
    def written(self) -> Sequence[Applied]:
        """The operations that are stored."""
        return [one for one in self.log if one.step is not self.made]

    @property
    def newest(self) -> Known:
        """The last stored operation that applied.

        If no stored operation applied: the operation that writes memories, or if there is none, the last operation.
        """
        applied = [one.step for one in (*reversed(self.written), *self.log) if one.is_applied]
        return applied[0] if applied else self.deciding

    @property
    def is_written_by_person(self) -> bool:
        """Whether the text begins with a whole text that a person wrote."""
        return _is_of_person(_find_base([one.step for one in self.log]))

    @property
    def edited(self) -> bool:
        """Whether a person changed what somebody else had written."""
        return any(one.step.edited for one in self.log if one.is_applied)

    def count_of(self, rank: int) -> int:
        """Return the number of stored operations of the scope with this rank."""
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


def apply(steps: Iterable[Known], made: Collection[Known] = ()) -> Log:
    """Return the outcomes of operations, one after the other. One that does not apply leaves the text as it is.

    A deletion restores the text from before the first operation of its scope: the text of the wider scopes and of the
    memories. `made` are the operations that write memories. Their ranks are ignored: none of them is treated as the
    first operation of a scope. If the operations of a scope make the text too long, the text of the wider scopes gives
    way (`_give_way`).
    """
    log: list[Applied] = []
    left_out: list[str] = []
    rank, base, text = None, "", ""
    parts = _split(steps, made)
    for at, part in enumerate(parts):
        if part[0].rank != rank and part[0] not in made:
            rank, base = part[0].rank, text
        if is_deletion(part[0]):
            text = base
            log.append(Applied(part.pop(0), text))
        if part and part[0].operation != "replace":
            text, lines = _give_way(text, part, _list_patterns(parts[at:]))
            left_out += lines
        log += _apply_all(part, text)
        text = log[-1].text
    return Log(log, "\n".join(left_out))


def _split(steps: Iterable[Known], made: Collection[Known]) -> list[list[Known]]:
    """Return the operations in parts. Each `replace`, and the first operation of each scope, begins a new part."""
    parts: list[list[Known]] = []
    rank = None
    for step in steps:
        is_nearer = step.rank != rank and step not in made
        rank = step.rank if is_nearer else rank
        if is_nearer or step.operation == "replace":
            parts.append([])
        parts[-1].append(step)
    return parts


def _list_patterns(parts: Iterable[Iterable[Known]]) -> list[str]:
    return [step.pattern for part in parts for step in part if step.operation == "search_replace" and step.pattern]


def _give_way(text: str, steps: Sequence[Known], patterns: Iterable[str]) -> tuple[str, list[str]]:
    """Remove just enough lines for the operations to fit; return the rest of the text, and the removed lines.

    The lines go in the order of `_order_lines`. Some operations can be too long even on an empty text. So the
    operations count as fitting if no more of them are too long than on an empty text. The number of removed lines is
    found by bisection: if one line fewer were removed, the operations would not fit. In rare cases they would also
    fit if far fewer lines were removed: one operation is then too long and has no effect, so the later ones have more
    room.
    """
    if not _count_too_long(_apply_all(steps, text)):
        return text, []
    least = _count_too_long(_apply_all(steps, ""))
    lines = text.split("\n")
    ordered = _order_lines(text, patterns)

    def keep(count: int) -> str:
        return "\n".join([lines[at] for at in sorted(ordered[count:])])

    def fits(count: int) -> bool:
        return _count_too_long(_apply_all(steps, keep(count))) <= least

    count = 0 if fits(0) else bisect_left(range(len(lines) + 1), True, key=fits)
    return keep(count), [lines[at] for at in sorted(ordered[:count])]


def _order_lines(text: str, patterns: Iterable[str]) -> list[int]:
    """Return the indexes of the lines in the order in which they give way: the first lines go first.

    The lines with the last occurrence of a pattern go after all others, so that the pattern is found as long as
    possible.
    """
    needed: set[int] = set()
    for pattern in patterns:
        at = text.rfind(pattern)
        if at >= 0:
            first = text.count("\n", 0, at)
            needed.update(range(first, first + pattern.count("\n") + 1))
    return sorted(range(text.count("\n") + 1), key=lambda index: (index in needed, index))


def _apply_all(steps: Iterable[Known], text: str) -> list[Applied]:
    """Return the outcomes of operations on a text; none of them is a deletion."""
    log = []
    for step in steps:
        changed = change(text, step.operation, step.content or "", step.pattern)
        text = text if changed.fault else changed.text
        log.append(Applied(step, text, changed.fault))
    return log


def _count_too_long(log: Iterable[Applied]) -> int:
    return sum(one.fault == "too_long" for one in log)


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


def choose_base(steps: Iterable[Known]) -> list[Known]:
    """Return the operations from the last `replace` on; all if there is none. `steps` are in the order of `order`."""
    kept: list[Known] = []
    for step in steps:
        if step.operation == "replace":
            kept.clear()
        kept.append(step)
    return kept


def begin(steps: Sequence[Known], memories: Sequence[Important]) -> tuple[Known | None, Sequence[Important]]:
    """Return the operation that writes memories into a block, and the memories in it; None if there are none.

    `steps` are the operations on the block (`choose_base`), and `memories` has the most important first. A block that
    begins with the whole text of a person has no memories. If a tool wrote the whole text, only memories that were
    stored later are added after this text, so that none returns that the tool has left out. The same applies to a whole
    text that the service stored to make room for an edit (`_edit` in `book.py`). Without a whole text, the block begins
    with the memories.
    """
    base = _find_base(steps)
    if _is_of_person(base):
        return None, ()
    later = [one for one in memories if base is None or one.statement_id > base.statement_id]
    return _fit(steps, 0 if base is None else 1, later)


def list_with_memories(
    steps: Sequence[Known], memories: Sequence[Important]
) -> tuple[Sequence[Known], Sequence[Known]]:
    """Return all operations on the block `facts`, in order, and those of them that write memories.

    `steps` include the operations that have no effect any more. The first list begins with an operation that writes
    memories, even if the whole text of a person hides the memories in the block. If a tool or the service wrote the
    whole text, a second such operation comes right after this text, with the memories that were stored later.
    """
    present = choose_base(drop_deleted(steps))
    base = _find_base(present)
    made, later = begin(present, memories) if base else (None, ())
    found = [*steps]
    if base is not None and made is not None:
        found.insert(found.index(base) + 1, made)
    keys = {one.key for one in later}
    first, _ = _fit(found, 0, [one for one in memories if one.key not in keys])
    added = [one for one in (first, made) if one is not None]
    return ([first, *found] if first else found), added


def _fit(steps: Sequence[Known], at: int, memories: Sequence[Important]) -> tuple[Known | None, Sequence[Important]]:
    """Return the operation that writes memories, to be inserted at the index `at`, and the memories in it; or None.

    The operations `steps` have precedence over memories: the least important memories are left out until the remaining
    ones do no harm. They then make no operation too long, and no line of a wider scope gives way to them.
    """
    chosen = choose(memories)
    if not chosen:
        return None, ()
    operation = "append" if at else "replace"
    without = apply(steps)
    most = _count_too_long(without.outcomes)

    def fits(dropped: int) -> bool:
        if dropped == len(chosen):
            return True
        made = make_operation(chosen[: len(chosen) - dropped], operation)
        log = apply([*steps[:at], made, *steps[at:]], (made,))
        return _count_too_long(log.outcomes) <= most and log.left_out == without.left_out

    dropped = 0 if fits(0) else bisect_left(range(len(chosen) + 1), True, key=fits)
    chosen = chosen[: len(chosen) - dropped]
    return (make_operation(chosen, operation), chosen) if chosen else (None, ())


def _find_base(steps: Sequence[Known]) -> Known | None:
    """Return the `replace` that the operations on a block begin with, or None."""
    base = steps[0] if steps else None
    return base if base is not None and base.operation == "replace" else None


def _is_of_person(base: Known | None) -> bool:
    return base is not None and base.origin == "person"


def fold(known: Iterable[Known], character: str | None, important: Iterable[Important] = ()) -> Mapping[str, Block]:
    """Return the blocks that have any operation, by label, in the order of the labels.

    The operations of wider scopes come first, and in a scope the older ones; deleted operations are left out. The text
    begins with the last `replace` in this order. So a `replace` in a near scope hides the texts of wider scopes, and
    the other operations build on these texts, whose first lines give way if there is not enough room. Operations in the
    scope `character` count only if they are about the given character; if `character` is None, none of them counts.

    The block `facts` also contains the memories that `begin` chooses.
    """
    of_label: dict[str, list[Known]] = {}
    for step in drop_deleted(known):
        if step.character in (None, character):
            of_label.setdefault(step.key, []).append(step)
    of_label = {label: choose_base(steps) for label, steps in of_label.items()}
    facts = of_label.get(LABEL, [])
    made, memories = begin(facts, choose_important(important, character))
    if made is not None:
        at = 1 if made.operation == "append" else 0
        of_label[LABEL] = [*facts[:at], made, *facts[at:]]
    return {label: _block(label, of_label[label], made, memories) for label in LABELS if label in of_label}


def _block(label: str, steps: Sequence[Known], made: Known | None, memories: Sequence[Important]) -> Block:
    if label != LABEL:
        made, memories = None, ()
    log = apply(steps, (made,) if made else ())
    text = log.outcomes[-1].text
    return Block(label, text, log.outcomes, [one.key for one in sort_by_age(memories)], made, log.left_out)


def order(step: Known) -> tuple[Any, ...]:
    """Return the sort key of an operation: wider scopes first, and in a scope the older ones first."""
    return -step.rank, step.learnt_us, step.statement_id
