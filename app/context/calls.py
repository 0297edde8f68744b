"""Matches tool calls with their results, and finds the pairs that a strict API accepts. Pure.

Weak models reuse call ids, counting from 0 in each message. So a result belongs to the latest earlier call with the
same id, unless that call already has a result.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from app.context.segments import HistoryMessage

_ARGUMENTS = {"function": "arguments", "custom": "input"}


def find_calls(entries: Sequence[HistoryMessage]) -> dict[int, int]:
    """Return a dictionary from the index of each tool result to the index of the message with its call.

    Results without a call or without text are left out.
    """
    if not any(entry.tool_calls for entry in entries):
        return {}
    called: dict[str, int] = {}
    found = {}
    for index, entry in enumerate(entries):
        for call in entry.tool_calls or ():
            called[str(call.get("id"))] = index
        if entry.role == "tool" and entry.tool_call_id in called and entry.text.strip():
            found[index] = called.pop(entry.tool_call_id)
    return found


def drop_unanswered_calls(entries: Sequence[HistoryMessage]) -> Sequence[HistoryMessage]:
    """Return the entries without the tool calls that have no result with text.

    Providers refuse such a call, and if it were written as text, the model would imitate it. A message that only made
    such calls is still returned, with a blank text and marked as `unanswered`.
    """
    if not any(entry.tool_calls for entry in entries):
        return entries
    answered: dict[int, set[str]] = {}
    for result, call in find_calls(entries).items():
        answered.setdefault(call, set()).add(str(entries[result].tool_call_id))
    left = []
    for index, entry in enumerate(entries):
        calls = [call for call in entry.tool_calls or () if str(call.get("id")) in answered.get(index, ())]
        left.append(entry._replace(tool_calls=calls or None, unanswered=not calls) if entry.tool_calls else entry)
    return left


def inner_positions(entries: Sequence[HistoryMessage]) -> set[int]:
    """Return the positions where a split would separate a call from its result; position i is before entry i."""
    return {position for result, call in find_calls(entries).items() for position in range(call + 1, result + 1)}


def find_native(entries: Sequence[HistoryMessage]) -> set[int]:
    """Return the indexes of the messages that OpenAI accepts as tool calls and results.

    OpenAI rejects a message with calls unless the messages directly after it are the results of all of its calls. It
    also rejects a result at any other position.
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


def name_results(entries: Sequence[HistoryMessage]) -> Sequence[HistoryMessage]:
    """Return the entries; a tool result without a name gets the name of the function that was called."""
    calls = find_calls(entries)
    if not calls:
        return entries
    named = list(entries)
    for result, call in calls.items():
        if not entries[result].name:
            names = (name for one, name, _ in _read(entries[call]) if one == entries[result].tool_call_id)
            named[result] = entries[result]._replace(name=next(names, None))
    return named


def word_calls(entry: HistoryMessage) -> str:
    """Return the entry's calls as text, one line each: `[calls get_weather {"city": "Kyoto"}]`."""
    return "\n".join(f"[calls {name} {arguments}]" for _, name, arguments in _read(entry))


def _read(entry: HistoryMessage) -> Iterator[tuple[object, str, str]]:
    """Yield (id, name, arguments) of each call. A call of unknown shape is named `tool`, with its JSON as arguments."""
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
