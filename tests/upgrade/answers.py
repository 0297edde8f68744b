"""Reads and compares what the service answers about the chats of a dump: contexts, and the memory of each layer."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from tests.talk import Json, ok, walk

FORMATS = ("anthropic", "openai", "text")
TIGHT_TOKENS = 400
CURRENT = "current"

_LAYERS = ("memos", "summary", "diary", "scenes", "recap")
_LISTS = ("memos", "diary", "scenes")
_MOST_ITEMS = 500
_MOST_CHARS = 240
_ABSENT = {"absent": True}
"""Compared in place of a field that only one of two objects has."""


async def list_lines(api: httpx.AsyncClient, chat_id: str) -> list[str]:
    """Return the ids of a chat's lines, checkpoints included."""
    pages = [await walk(api, f"/v1/chats/{chat_id}/{name}") for name in ("lines", "checkpoints")]
    return sorted(item["line"] for found in pages for page in found for item in page)


async def read_contexts(api: httpx.AsyncClient, chat_id: str, lines: Iterable[str]) -> Json:
    """Return the contexts of a chat: in each format for the current line, `segments` for each of the others.

    What an answer has in common with that of the current line in the format `segments` is left out.
    """
    current = await _context(api, chat_id)
    found: Json = {CURRENT: {"segments": current}}
    for name in FORMATS:
        found[CURRENT][name] = _difference(current, await _context(api, chat_id, format=name))
    tight = {"max_tokens": TIGHT_TOKENS}
    found[CURRENT]["tight"] = _difference(current, await _context(api, chat_id, **tight))
    pages = await walk(api, f"/v1/chats/{chat_id}/inclusion", limit=_MOST_ITEMS)
    found[CURRENT]["inclusion"] = {str(item["seq"]): _word_inclusion(item) for page in pages for item in page}
    return found | {line: _difference(current, await _context(api, chat_id, line=line)) for line in sorted(lines)}


async def read_memory(api: httpx.AsyncClient, chat_id: str) -> Json:
    """Return what each layer has of a chat's current line."""
    return {name: await _read_layer(api, chat_id, name) for name in _LAYERS}


def write_json(value: Any, indent: str = "") -> str:
    """Return `value` as JSON with sorted keys, and each value that fits into one line on one line."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(line) + len(indent) <= _MOST_CHARS or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{inner}{write_json(item, inner)}" for item in value) + f"\n{indent}]"
    items = (f"{inner}{json.dumps(name)}: {write_json(value[name], inner)}" for name in sorted(value))
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"


def list_differences(recorded: Any, found: Any, path: str = "") -> list[str]:
    """Return one line for each value that differs, with its path; segments and messages are named by their names."""
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        names = sorted({*recorded, *found})
        pairs = [(name, recorded.get(name, _ABSENT), found.get(name, _ABSENT)) for name in names]
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = [(_name(at, old), old, new) for at, (old, new) in enumerate(zip(recorded, found, strict=True))]
    else:
        old, new = json.dumps(recorded, ensure_ascii=False), json.dumps(found, ensure_ascii=False)
        return [] if old == new else [f"{path}: {_word_difference(old, new)}"]
    return [line for name, old, new in pairs for line in list_differences(old, new, f"{path}/{name}")]


def _word_difference(old: str, new: str) -> str:
    """Return both texts from just before the first character that differs."""
    differing = (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    at = max(0, next(differing, min(len(old), len(new))) - 20)
    return f"recorded …{old[at : at + 120]}…, found …{new[at : at + 120]}…"


def _name(at: int, item: Any) -> str:
    return str(item["name"]) if isinstance(item, Mapping) and "name" in item else str(at)


async def _context(api: httpx.AsyncClient, chat_id: str, **options: Any) -> Json:
    return ok(await api.get(f"/v1/chats/{chat_id}/context", params=options), 200)


def _difference(base: Json, answer: Json) -> Json:
    assert base.keys() <= answer.keys(), "a format that leaves out a field needs another form"
    return {name: value for name, value in answer.items() if name not in base or base[name] != value}


def _word_inclusion(item: Json) -> str:
    """Return all fields of a message's inclusion but its seq in one line."""
    return " ".join(f"{name}={item[name]}" for name in sorted(item) if name != "seq")


async def _read_layer(api: httpx.AsyncClient, chat_id: str, name: str) -> Any:
    path = f"/v1/chats/{chat_id}/{name}"
    if name not in _LISTS:
        return ok(await api.get(path), 200)
    pages = await walk(api, path, limit=_MOST_ITEMS)
    return [item for page in pages for item in page]
