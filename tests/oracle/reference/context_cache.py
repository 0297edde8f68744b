"""The expected value of `chats.context_cache`, computed from the layers' tables and the anchor."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.kit.tokens import count_tokens
from tests.oracle.reference import chains
from tests.oracle.reference.narratives import NarrativeLine
from tests.oracle.reference.tables import DiaryEntry, Scene, Tables, Version
from tests.oracle.service import WORD
from tests.talk import Json

RECENT_LINES = 20


def expected_cache(line: NarrativeLine, tables: Tables, anchor: int) -> Json:
    """Return the expected `chats.context_cache`, without false and empty values."""
    cache: Json = compact(
        {
            "summary": _summary(line, tables, anchor),
            "scenes": _recap(line, tables, anchor),
            "diary": _diaries(line, tables, anchor),
        }
    )
    return cache


def compact(value: Any) -> Any:
    """Return the value without false and empty values."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: compact(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner}


def cached_words(line: NarrativeLine, tables: Tables) -> dict[str, list[str]]:
    """Return the unique words of each text in the context cache."""
    cache = tables.context_cache
    diary = cache.get("diary", {}).get("characters", {}).get(line.character, {})
    return {
        "summary": WORD.findall(cache.get("summary", {}).get("text", "")),
        "recap": WORD.findall(cache.get("scenes", {}).get("text", "")),
        "diary": WORD.findall(diary.get("text", "")),
        "diary_recent": WORD.findall(diary.get("recent", {}).get("text", "")),
    }


def recap_limit(line: NarrativeLine, tables: Tables) -> int:
    """Return the last seq that the running recap has to cover."""
    covered = tables.scenes[: max(len(tables.scenes) - line.settings.exclude_latest, 0)]
    return covered[-1].last_seq if covered else 0


def shown_recap(line: NarrativeLine, tables: Tables) -> Version | None:
    """Return the version of the running recap that is in the context.

    If `exclude_latest` is 0, a person's version may end after the last scene, because that scene was truncated later.
    """
    chain = chains.current_chain(tables.versions_of(("recap", "")))
    limit = recap_limit(line, tables) if line.settings.exclude_latest else line.head
    return chains.latest_valid(chain, limit + 1, by_person=not line.settings.scenes)


def excludes_person_version(line: NarrativeLine, tables: Tables) -> bool:
    """Whether a person's version covers scenes that `exclude_latest` excludes, which suspends folding."""
    chain = chains.current_chain(tables.versions_of(("recap", ""))) if line.settings.exclude_latest else []
    return any(one.by_person and not one.deleted and one.last_unit > recap_limit(line, tables) for one in chain)


def has_open_scene(line: NarrativeLine, tables: Tables) -> bool:
    """Whether a message follows the last scene."""
    last = tables.scenes[-1].last_seq if tables.scenes else 0
    return any(message.seq > last for message in line.not_deleted)


def old_scenes(line: NarrativeLine, tables: Tables, keep: int) -> Sequence[Scene]:
    """Return all closed scenes except the last `keep` scenes; the open scene counts as one of those."""
    kept = max(keep - has_open_scene(line, tables), 0)
    return tables.scenes[: max(len(tables.scenes) - kept, 0)]


def _cached_version(chain: Sequence[Version], one: Version | None, heading: str) -> Json:
    if one is None:
        return {}
    return {
        "version": one.version,
        "text": one.whole,
        "tokens": count_tokens(f"## {heading}\n\n{one.whole}"),
        "last_seq": one.last_unit,
        "stale": chains.is_stale(chain, one),
    }


def _summary(line: NarrativeLine, tables: Tables, anchor: int) -> Json:
    enabled = line.settings.summary
    chain = chains.current_chain(tables.versions_of(("summary", "")))
    one = chains.latest_usable(chain, anchor, by_person=not enabled)
    cached = _cached_version(chain, one, "Recent Conversation Summary")
    covered_seq = one.last_unit if one else 0
    if enabled and any(covered_seq < message.seq < anchor and message.sendable_if_shown for message in line.messages):
        cached["gaps"] = [[covered_seq + 1, anchor - 1]]
    if enabled and line.settings.edges == "folds":
        edges = [link.last_unit + 1 for link in chain if link.last_unit]
        cached["edges"] = [edge for edge in edges if edge >= anchor]
    return cached


def _recap(line: NarrativeLine, tables: Tables, anchor: int) -> Json:
    chain = chains.current_chain(tables.versions_of(("recap", "")))
    one = shown_recap(line, tables)
    cached = _cached_version(chain, one, "Running Recap")
    if line.settings.scenes:
        cached["gaps"] = _join(sorted(_recap_gaps(line, tables, one.last_unit if one else 0, anchor)))
    if line.settings.scenes and line.settings.edges == "scenes":
        edges = [scene.last_seq + 1 for scene in old_scenes(line, tables, line.settings.keep_scenes)]
        cached["edges"] = [edge for edge in edges if edge >= anchor]
    return cached


def _recap_gaps(line: NarrativeLine, tables: Tables, covered: int, anchor: int) -> set[int]:
    """Return the seqs before the anchor of scenes that the recap has to cover and does not, or with a stale recap.

    If auto-hide hides messages of such a scene after the anchor, all seqs of the scene are returned.
    """
    missing: set[int] = set()
    for scene in tables.scenes:
        uncovered = covered < scene.last_seq <= recap_limit(line, tables)
        stale = scene.last_seq <= covered and not scene.by_person and scene.source_hash != scene.current_hash
        hidden = any(
            message.hidden_by_scenes
            for message in line.not_deleted
            if max(scene.first_seq, anchor) <= message.seq <= scene.last_seq
        )
        if uncovered or stale:
            missing |= set(range(scene.first_seq, scene.last_seq + 1 if hidden else min(scene.last_seq + 1, anchor)))
    return missing


def _join(seqs: Sequence[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for seq in seqs:
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ranges


def held_diaries(tables: Tables) -> tuple[int, Mapping[str, Json]]:
    """Return the anchor at which the diaries are held, and what each holds, by character; (0, {}) without diaries."""
    cached = tables.context_cache.get("diary", {})
    return cached.get("anchor_seq", 0), {name: one["held"] for name, one in cached.get("characters", {}).items()}


def valid_folds(line: NarrativeLine, tables: Tables, name: str) -> dict[int | None, Version]:
    """Return the versions of a diary's folded part that may be shown, by their numbers."""
    chain = chains.current_chain(tables.versions_of(("diary", name))) if line.settings.diary else []
    return {one.version: one for one in chains.valid_versions(chain)}


def _diaries(line: NarrativeLine, tables: Tables, anchor: int) -> Json:
    """Return the expected texts of all diaries, given what each holds; one without entries may be cached as empty."""
    names = {*(entry.character for entry in tables.entries), *held_diaries(tables)[1]}
    return {"anchor_seq": anchor, "characters": {name: _diary(line, tables, name) for name in names}} if names else {}


def _diary(line: NarrativeLine, tables: Tables, name: str) -> Json:
    held = held_diaries(tables)[1][name]
    own = [one for one in tables.entries if one.character == name and one.is_valid(generated=line.settings.diary)]
    entries = [one for one in own if one.number in held["numbers"]]
    later = [one for one in own if one.number > held["after"] and one.number not in held["numbers"]]
    base = valid_folds(line, tables, name).get(held["version"])
    found: Json = {"held": held, "recent": _recent(later)}
    folded, shown = _excerpt(base.text if base else "", entries, line.settings.lines)
    text = "\n\n".join(part for part in (folded, _join_entries(shown, line.settings.lines)) if part)
    if not text:
        return found
    version = base.version if base and folded else None
    sources = [*([f"diary:folded:{version}"] if version else []), *(f"diary:{entry.entry_id}" for entry in shown)]
    last_number = base.last_unit if base and folded else 0
    covered = [one.at_seq for one in tables.entries if one.character == name and one.number <= last_number]
    last_seq = max([*covered, *(one.at_seq for one in entries)], default=0)
    return found | _segment(f"## Diary\n\n{text}", sources) | {"version": version, "last_seq": last_seq}


def _render_entry(entry: DiaryEntry) -> str:
    return f"## {entry.dated_at:%m/%d} — memo entry\n{entry.content}"


def _recent(entries: Sequence[DiaryEntry]) -> Json:
    """Return the expected text of the entries after the history."""
    _, shown = _excerpt("", entries, RECENT_LINES)
    if not shown:
        return {}
    older = _join_entries(entries[: len(entries) - len(shown)])
    text = f"## Diary, newest entries\n\n{_join_entries(shown, RECENT_LINES)}"
    return _segment(text, [f"diary:{entry.entry_id}" for entry in shown]) | {"left_out_tokens": count_tokens(older)}


def _excerpt(folded: str, entries: Sequence[DiaryEntry], limit: int) -> tuple[str, Sequence[DiaryEntry]]:
    """Return the last lines of a diary's folded part, and the entries that are shown, at least one if there are any."""
    kept = [n for n in range(len(entries) + 1) if _lines(_join_entries(entries[len(entries) - n :])) <= limit][-1]
    if entries and not kept:
        return "", entries[-1:]
    recent = _join_entries(entries[len(entries) - kept :])
    folded = "" if kept < len(entries) else _last_lines(folded, limit - _lines(recent) - bool(recent))
    return folded, entries[len(entries) - kept :]


def _segment(text: str, sources: Sequence[str]) -> Json:
    return {"text": text, "tokens": count_tokens(text), "sources": list(sources)}


def _join_entries(entries: Sequence[DiaryEntry], limit: int = 10_000) -> str:
    return _last_lines("\n\n".join(map(_render_entry, entries)), limit)


def _lines(text: str) -> int:
    return len(text.split("\n")) if text else 0


def _last_lines(text: str, limit: int) -> str:
    return "\n".join(text.split("\n")[-limit:]) if limit > 0 else ""
