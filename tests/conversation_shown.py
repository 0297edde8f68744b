"""What the chat's row has to hold of each layer for contexts, worked out from its tables and the anchor."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.kit.tokens import count_tokens
from tests import conversation_chains as chains
from tests.conversation_service import WORD
from tests.conversation_tables import Entry, Scene, Tables, Version
from tests.conversation_telling_model import TellingLine
from tests.talk import Json

CHARACTER = "Kai"


def expected_shown(line: TellingLine, tables: Tables, anchor: int) -> Json:
    """`chats.context_cache` as it has to be; without what says nothing."""
    shown: Json = compact(
        {
            "summary": _summary(line, tables, anchor),
            "scenes": _recap(line, tables, anchor),
            "diary": {
                "characters": {name: _diary(line, tables, name) for name in {e.character for e in tables.entries}}
            },
        }
    )
    return shown


def compact(value: Any) -> Any:
    """The same without false and empty values."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: compact(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner}


def read_shown_words(tables: Tables) -> dict[str, list[str]]:
    """The words of each text that is shown."""
    shown = tables.shown
    diary = shown.get("diary", {}).get("characters", {}).get(CHARACTER, {})
    return {
        "summary": WORD.findall(shown.get("summary", {}).get("text", "")),
        "recap": WORD.findall(shown.get("scenes", {}).get("text", "")),
        "diary": WORD.findall(diary.get("text", "")),
    }


def find_limit(line: TellingLine, tables: Tables) -> int:
    """The last seq that the running recap is to tell of."""
    told = tables.scenes[: max(len(tables.scenes) - line.rules.exclude_latest, 0)]
    return told[-1].last_seq if told else 0


def shown_recap(line: TellingLine, tables: Tables) -> Version | None:
    """The version of the running recap that is shown.

    Where no scene is left out a person's text may reach beyond the last one, whose end was cut off since.
    """
    chain = chains.current_chain(tables.of(("recap", "")))
    limit = find_limit(line, tables) if line.rules.exclude_latest else line.head
    return chains.newest_true(chain, limit + 1, by_person=not line.rules.scenes)


def leaves_out_written(line: TellingLine, tables: Tables) -> bool:
    """Whether a person's version tells of scenes that are left out: then nothing is folded until it shows again."""
    chain = chains.current_chain(tables.of(("recap", ""))) if line.rules.exclude_latest else []
    return any(one.by_person and not one.deleted and one.last_place > find_limit(line, tables) for one in chain)


def has_open(line: TellingLine, tables: Tables) -> bool:
    """Whether a message follows the last scene."""
    last = tables.scenes[-1].last_seq if tables.scenes else 0
    return any(said.seq > last for said in line.living)


def old_scenes(line: TellingLine, tables: Tables, keep: int) -> Sequence[Scene]:
    """All scenes but the last `keep`, of which the open one is one."""
    kept = max(keep - has_open(line, tables), 0)
    return tables.scenes[: max(len(tables.scenes) - kept, 0)]


def _of_version(chain: Sequence[Version], one: Version | None, heading: str) -> Json:
    if one is None:
        return {}
    return {
        "version": one.version,
        "text": one.text,
        "tokens": count_tokens(f"## {heading}\n\n{one.text}"),
        "last_seq": one.last_place,
        "stale": chains.is_stale(chain, one),
    }


def _summary(line: TellingLine, tables: Tables, anchor: int) -> Json:
    enabled = line.rules.summary
    chain = chains.current_chain(tables.of(("summary", "")))
    one = chains.newest_true(chain, anchor, by_person=not enabled)
    shown = _of_version(chain, one, "Recent Conversation Summary")
    told_seq = one.last_place if one else 0
    if enabled and any(told_seq < said.seq < anchor and said.could_be_sent for said in line.messages):
        shown["gaps"] = [[told_seq + 1, anchor - 1]]
    if enabled and line.rules.edges == "folds":
        edges = [link.last_place + 1 for link in chain if link.last_place]
        shown["edges"] = [edge for edge in edges if edge >= anchor]
    return shown


def _recap(line: TellingLine, tables: Tables, anchor: int) -> Json:
    chain = chains.current_chain(tables.of(("recap", "")))
    one = shown_recap(line, tables)
    shown = _of_version(chain, one, "Running Recap")
    if line.rules.scenes:
        shown["gaps"] = _join(sorted(_recap_gaps(line, tables, one.last_place if one else 0, anchor)))
    if line.rules.edges == "scenes":
        edges = [scene.last_seq + 1 for scene in old_scenes(line, tables, line.rules.keep_scenes)]
        shown["edges"] = [edge for edge in edges if edge >= anchor]
    return shown


def _recap_gaps(line: TellingLine, tables: Tables, covered: int, anchor: int) -> set[int]:
    """The seqs before the anchor of scenes that the recap is to tell of and does not, or not truly.

    All of such a scene where behind the anchor something of it is hidden by scenes.
    """
    missing: set[int] = set()
    for scene in tables.scenes:
        behind = covered < scene.last_seq <= find_limit(line, tables)
        untold = scene.last_seq <= covered and not scene.is_written and scene.source_hash != scene.current_hash
        hidden = any(
            said.out_of_sight for said in line.living if max(scene.first_seq, anchor) <= said.seq <= scene.last_seq
        )
        if behind or untold:
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


def _diary(line: TellingLine, tables: Tables, name: str) -> Json:
    enabled, limit = line.rules.diary, line.rules.lines
    base = chains.newest_true(chains.current_chain(tables.of(("diary", name)))) if enabled else None
    folded = base.text if base else ""
    entries = [
        entry
        for entry in tables.entries
        if entry.character == name
        and entry.number > (base.last_place if base else 0)
        and entry.holds(by_service=enabled)
    ]
    kept = [n for n in range(len(entries) + 1) if _lines(_join_entries(entries[len(entries) - n :])) <= limit][-1]
    shown = entries[len(entries) - kept :]
    told = _join_entries(shown)
    if entries and not kept:
        shown, told, folded = entries[-1:], _last_lines(_word(entries[-1]), limit), ""
    elif kept < len(entries):
        folded = ""
    else:
        folded = _last_lines(folded, limit - _lines(told) - bool(told))
    if not folded and not told:
        return {}
    text = "\n\n".join(part for part in ("## Diary", folded, told) if part)
    version = base.version if base and folded else None
    return {
        "text": text,
        "tokens": count_tokens(text),
        "sources": [
            *([f"diary:folded:{version}"] if version else []),
            *(f"diary:{entry.entry_id}" for entry in shown),
        ],
        "version": version,
    }


def _word(entry: Entry) -> str:
    return f"## {entry.dated_at:%m/%d} — memo entry\n{entry.content}"


def _join_entries(entries: Sequence[Entry]) -> str:
    return "\n\n".join(map(_word, entries))


def _lines(text: str) -> int:
    return len(text.split("\n")) if text else 0


def _last_lines(text: str, limit: int) -> str:
    return "\n".join(text.split("\n")[-limit:]) if limit > 0 else ""
