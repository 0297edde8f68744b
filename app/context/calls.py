"""Tool calls and their results: what belongs together, and what a strict API takes for a pair. Pure.

Weak models number their calls from 0 each time, so a result belongs to the nearest call before it that
has its id and no result yet.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from app.context.segments import Entry

_ARGUMENTS = {"function": "arguments", "custom": "input"}


def find_calls(entries: Sequence[Entry]) -> dict[int, int]:
    """The index of each tool result to the index of the message that called for it; orphans are left out."""
    if not any(entry.tool_calls for entry in entries):
        return {}
    called: dict[str, int] = {}
    found = {}
    for index, entry in enumerate(entries):
        for call in entry.tool_calls or ():
            called[str(call.get("id"))] = index
        if entry.role == "tool" and entry.tool_call_id in called:
            found[index] = called.pop(entry.tool_call_id)
    return found


def inner_positions(entries: Sequence[Entry]) -> set[int]:
    """The positions, each before the entry of that index, where a call and its result would be parted."""
    return {position for result, call in find_calls(entries).items() for position in range(call + 1, result + 1)}


def find_native(entries: Sequence[Entry]) -> set[int]:
    """The indexes of calls and results that OpenAI accepts as such.

    It refuses a call unless the very next messages answer each of its ids, and a result anywhere else.
    """
    native: set[int] = set()
    for index, entry in enumerate(entries):
        if entry.role != "assistant" or not entry.tool_calls:
            continue
        ids = [call.get("id") for call in entry.tool_calls if _is_whole(call)]
        answers = entries[index + 1 : index + 1 + len(ids)]
        if (
            len(ids) == len(set(ids)) == len(entry.tool_calls) == len(answers)
            and all(answer.role == "tool" for answer in answers)
            and {answer.tool_call_id for answer in answers} == set(ids)
        ):
            native.update(range(index, index + 1 + len(ids)))
    return native


def name_results(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The same entries, with nameless tool results named after the function that was called."""
    calls = find_calls(entries)
    if not calls:
        return entries
    named = list(entries)
    for result, call in calls.items():
        if not entries[result].name:
            names = (name for one, name, _ in _read(entries[call]) if one == entries[result].tool_call_id)
            named[result] = entries[result]._replace(name=next(names, None))
    return named


def tell_calls(entry: Entry) -> str:
    """The entry's calls in words, one line each: `[calls get_weather {"city": "Kyoto"}]`."""
    return "\n".join(f"[calls {name} {arguments}]" for _, name, arguments in _read(entry))


def _read(entry: Entry) -> Iterator[tuple[object, str, str]]:
    """Id, name and arguments of each call; of one in a shape that is not known, all of it as arguments."""
    for call in entry.tool_calls or ():
        if _is_whole(call):
            kind = call["type"]
            yield call["id"], call[kind]["name"], call[kind][_ARGUMENTS[kind]]
        else:
            yield call.get("id"), "tool", json.dumps(call, ensure_ascii=False)


def _is_whole(call: dict[str, Any]) -> bool:
    kind = call.get("type")
    if not isinstance(kind, str) or kind not in _ARGUMENTS or not isinstance(call.get("id"), str):
        return False
    called = call.get(kind)
    return (
        isinstance(called, dict)
        and isinstance(called.get("name"), str)
        and isinstance(called.get(_ARGUMENTS[kind]), str)
    )
