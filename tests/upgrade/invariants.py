"""What has to hold after a conversation that two releases served at the same time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tests.talk import Json

EVERY_MESSAGES = 8


def list_lost(acknowledged: Mapping[str, str], messages: Sequence[Json]) -> list[str]:
    """Return the faults of a chat's messages; `acknowledged` are the texts that answers confirmed, by message id."""
    found = {message["id"]: message["content"] for message in messages}
    seqs = [message["seq"] for message in messages]
    return [
        *(f"message {name} is lost" for name in acknowledged.keys() - found.keys()),
        *(f"message {name} was never sent" for name in found.keys() - acknowledged.keys()),
        *(f"message {name} has another text" for name, text in acknowledged.items() if found.get(name, text) != text),
        *([] if len(found) == len(messages) else ["a message is doubled"]),
        *([] if seqs == list(range(1, len(seqs) + 1)) else [f"the seqs are {seqs}"]),
    ]


def list_memo_faults(memos: Sequence[Json], messages: int) -> list[str]:
    """Return the faults of a memo book of a chat with so many messages, in which each batch has one memo."""
    ranges = [(memo["first_seq"], memo["last_seq"]) for memo in memos]
    firsts = range(1, messages - EVERY_MESSAGES + 2, EVERY_MESSAGES)
    expected = [(first, first + EVERY_MESSAGES - 1) for first in firsts]
    return [
        *([] if ranges == expected else [f"the batches are {ranges}"]),
        *([] if len({memo["number"] for memo in memos}) == len(memos) else ["two memos have one number"]),
        *(f"memo {memo['number']} is {memo['status']}" for memo in memos if memo["status"] != "ready"),
        *(f"memo {memo['number']} is stale" for memo in memos if memo["stale"]),
    ]


def list_errors(log: Iterable[bytes]) -> list[str]:
    """Return the lines of a process's log that report an error, and those that are not of its log."""
    return [line.decode() for line in log if _is_error(line)]


def _is_error(line: bytes) -> bool:
    try:
        logged: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return logged["level"] in ("error", "critical")
