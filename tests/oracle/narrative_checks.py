"""Comparison of a line's narratives with the reference, after each step and when all work is done."""

from itertools import pairwise

from app.chats.eligibility import Filters
from app.diary.handlers import FOLD, WRITE
from app.narratives.service import NO_SOURCE
from tests.oracle.misbehaviour import repeats_misbehaviour
from tests.oracle.reference import chains
from tests.oracle.reference.context_cache import (
    cached_words,
    compact,
    excludes_person_version,
    expected_cache,
    held_diaries,
    old_scenes,
    recap_limit,
    shown_recap,
    valid_folds,
)
from tests.oracle.reference.lines import drop_unsent
from tests.oracle.reference.narratives import NarrativeLine
from tests.oracle.reference.tables import DiaryEntry, Tables, Version
from tests.oracle.service import WORD, Snapshot
from tests.talk import Json

_EVERYTHING = Filters(include_system=True)


def check_narratives(line: NarrativeLine, tables: Tables, snapshot: Snapshot, *, complete: bool) -> None:
    """Check everything that must hold after each step.

    With `complete`, every answer of the model so far has repeated all words of its prompt.
    """
    line.record_versions(tables)
    for narrative in tables.narratives:
        check_chain(line, tables, narrative)
    check_scenes(line, tables)
    check_character(line, tables, snapshot)
    check_entries(line, tables, complete=complete)
    check_stale_entries(line, tables, snapshot)
    check_words(line, tables, complete=complete)
    assert compact(tables.context_cache) == expected_cache(line, tables, snapshot.anchor)
    check_held(line, tables)
    check_context_words(line, tables, snapshot)


# --- versions ---


def check_chain(line: NarrativeLine, tables: Tables, narrative: tuple[str, str]) -> None:
    """Check that at most one version is current, the ranges and kept texts of the chain, and the hash of each input."""
    versions = tables.versions_of(narrative)
    assert len([one for one in versions if one.current]) <= 1
    chain = chains.current_chain(versions)
    for one in versions:
        assert one.base_version is None or one.base_version < one.version
        if one.first_unit <= one.last_unit and not _was_truncated(one):
            assert one.current_hash == chains.step_hash(line, tables, one), one
        assert one.last_unit <= (line.head if one.layer != "diary" else max(e.number for e in tables.entries))
    for base, one in pairwise(chain):
        assert one.base_version == base.version
        assert one.first_unit == base.last_unit + 1, (base, one)
        if not one.by_person:
            assert one.kept_text == line.texts[*narrative, base.version][-2], "a fold keeps what a person wrote"
    for one in chain[:1]:
        if one.base_version is None:
            assert one.first_unit == 1
        else:
            assert one.by_person, "without its base, only a version that a person wrote remains"


def _was_truncated(version: Version) -> bool:
    """Whether a truncation ended within the range of a person's version; its hash then matches no range."""
    return version.by_person and len(version.current_hash) > len(NO_SOURCE)


# --- the diary that is held to the cut ---


def check_held(line: NarrativeLine, tables: Tables) -> None:
    """Check that each diary holds the same as long as the anchor stays and the fold that it holds is valid."""
    anchor, held = held_diaries(tables)
    former_anchor, former = line.held
    line.held = (anchor, held)
    for name, one in held.items():
        valid = {None, *valid_folds(line, tables, name)}
        assert one["version"] in valid
        stays = anchor == former_anchor and line.head and name in former
        if stays and "lost" not in former[name] and former[name]["version"] in valid:
            assert one == former[name]
        elif stays and former[name].get("lost", {}).get("version") in valid - {None}:
            assert one == former[name]["lost"]
        elif anchor != former_anchor:
            _check_made(tables, name, one, anchor)


def _check_made(tables: Tables, name: str, held: Json, anchor: int) -> None:
    """Check that a diary made at a cut holds only entries before the anchor, after those that its version covers."""
    entries = {entry.number: entry for entry in tables.entries if entry.character == name}
    assert held["numbers"] == sorted(held["numbers"])
    assert all(number > held["after"] >= held["covered"] for number in held["numbers"])
    assert all(entries[number].at_seq < anchor for number in held["numbers"] if number in entries)


# --- scenes and entries ---


def check_scenes(line: NarrativeLine, tables: Tables) -> None:
    """Check that closed scenes follow each other from seq 1 on, and that each ends with a message not deleted."""
    firsts = [1, *(scene.last_seq + 1 for scene in tables.scenes)]
    assert [scene.first_seq for scene in tables.scenes] == firsts[:-1]
    assert [scene.number for scene in tables.scenes] == list(range(1, len(tables.scenes) + 1))
    for scene in tables.scenes:
        assert scene.first_seq <= scene.last_seq <= line.head
        assert not line.messages[scene.last_seq - 1].deleted
        assert scene.current_hash == chains.messages_hash(line, scene.first_seq, scene.last_seq, scene.filters)
    assert all(scene.last_seq <= line.head for scene in tables.lifted)


def check_character(line: NarrativeLine, tables: Tables, snapshot: Snapshot) -> None:
    """Check that the diary, its folded part, its cached text and its work have the present name of the character."""
    subjects = {subject for layer, subject in tables.narratives if layer == "diary"}
    named = {*(entry.character for entry in tables.entries), *subjects, *held_diaries(tables)[1]}
    work = {key.rpartition(":")[2] for key in snapshot.work if key.startswith((FOLD, WRITE))}
    assert named | work <= {line.character}


def check_entries(line: NarrativeLine, tables: Tables, *, complete: bool) -> None:
    """Check that numbers are unique, and compare the hash and words of generated entries with their messages."""
    numbers = [entry.number for entry in tables.entries]
    assert len(numbers) == len(set(numbers))
    for entry in tables.entries:
        assert entry.at_seq <= line.head
        if entry.first_seq is None or entry.last_seq is None:
            continue
        assert entry.last_seq <= entry.at_seq
        if not entry.deleted:
            current = chains.messages_hash(line, entry.first_seq, entry.last_seq, entry.filters)
            assert entry.current_hash == current
        if entry.is_valid() and entry.origin != "person":
            words = chains.messages_words(line, entry.first_seq, entry.last_seq, entry.filters)
            _check_echoed(WORD.findall(entry.content), words, complete=complete)


def stale_entries(tables: Tables) -> list[DiaryEntry]:
    """Return the entries that the service has to write again."""
    return [one for one in tables.entries if not (one.deleted or one.hidden or one.is_valid() or one.is_empty)]


def check_stale_entries(line: NarrativeLine, tables: Tables, snapshot: Snapshot) -> None:
    """Check that each stale entry has work, unless the model would not write about the messages that it has now."""
    if line.settings.diary:
        assert not [
            entry
            for entry in stale_entries(tables)
            if f"entry:{entry.entry_id}" not in snapshot.work
            and (entry.entry_id, entry.current_hash) not in line.unwritten
        ]


# --- words ---


def check_words(line: NarrativeLine, tables: Tables, *, complete: bool) -> None:
    """Check that each valid generated version has exactly the words of its base and of its input, in this order.

    No text has the words of an answer that had to be refused.
    """
    for narrative in tables.narratives:
        for one in chains.valid_versions(chains.current_chain(tables.versions_of(narrative))):
            if one.by_person or one.deleted:
                continue
            base_text = "" if one.base_version is None else line.texts[*narrative, one.base_version][-1]
            words = [*WORD.findall(base_text), *chains.step_words(line, tables, one)]
            _check_echoed(WORD.findall(one.text), words, complete=complete)
    for scene in tables.scenes:
        if scene.is_valid and not scene.by_person:
            words = chains.messages_words(line, scene.first_seq, scene.last_seq, scene.filters)
            _check_echoed(WORD.findall(scene.recap), words, complete=complete)
    texts = [one.whole for one in tables.versions] + [entry.content for entry in tables.entries]
    texts += [f"{scene.title}\n{scene.recap}" for scene in tables.scenes]
    assert not list(filter(repeats_misbehaviour, texts))


def check_context_words(line: NarrativeLine, tables: Tables, snapshot: Snapshot) -> None:
    """Check that the cache has no word of a message that is not eligible, and the words of the context in order."""
    allowed = {word for one in chains.eligible(line, 1, line.head, _EVERYTHING) for word in WORD.findall(one.text)}
    cached = cached_words(line, tables)
    assert {word for words in cached.values() for word in words if word.startswith("w")} <= allowed
    pinned = WORD.findall(" ".join(one.text for one in line.pinned(snapshot.anchor)))
    memos = WORD.findall(" ".join(memo.text for memo in line.memos_in_prompt(snapshot.anchor)))
    sent = line.sendable_from(snapshot.anchor)
    said = [one for one in sent if one.text.strip()]  # an unanswered call without a text is not in the prompt
    newest = said[-1:] if said and said[-1].role == "user" else []
    history = WORD.findall(" ".join(one.text for one in said[: len(said) - len(newest)]))
    tail = [*cached["diary_recent"], *WORD.findall(" ".join(one.text for one in newest))]
    first, in_order = (cached["recap"], []) if line.settings.position == "before_prompt" else ([], cached["recap"])
    if line.settings.position == "none":
        in_order = []
    assert snapshot.words == [*first, *pinned, *cached["diary"], *in_order, *cached["summary"], *memos, *history, *tail]


def _check_echoed(found: list[str], words: list[str], *, complete: bool) -> None:
    if complete:
        assert found == words
    else:
        rest = iter(words)
        assert all(word in rest for word in found), (found, words)


# --- the anchor ---


def check_anchor(line: NarrativeLine, snapshot: Snapshot) -> None:
    """Check that the history has `keep` messages or all there are, and that the anchor skips only hidden messages.

    "All" includes the messages that auto-hide has hidden.
    """
    cut = snapshot.row["last_cut"]
    cut_seq = cut["at_seq"] if cut else 1
    may_skip = line.settings.scenes or snapshot.anchor == line.anchor  # messages that auto-hide hides or has hidden
    assert snapshot.anchor == cut_seq or (snapshot.anchor > cut_seq and may_skip)
    if snapshot.anchor != line.anchor:
        assert not [message.seq for message in line.sendable_from(cut_seq) if message.seq < snapshot.anchor]
    left = len(line.sent_from(snapshot.anchor))
    is_all = left == len(drop_unsent([one for one in line.not_deleted if one.sendable_if_shown]))
    assert left >= line.settings.keep or is_all
    if snapshot.anchor > line.anchor and cut and cut_seq == snapshot.anchor and cut["reason"] != "rewind":
        assert is_all or line.can_cut(snapshot.anchor, line.anchor)


# --- once all work is done ---


def check_settled(line: NarrativeLine, tables: Tables, snapshot: Snapshot) -> None:
    """Check a line without due work: the narratives cover what they have to, and auto-hide has been applied."""
    assert snapshot.work == {}
    chain = chains.current_chain(tables.versions_of(("summary", "")))
    if line.settings.summary and not any(one.last_unit >= snapshot.anchor for one in chains.valid_versions(chain)):
        covered_seq = tables.context_cache.get("summary", {}).get("last_seq", 0)
        assert not [message.seq for message in line.sendable_from(covered_seq + 1) if message.seq < snapshot.anchor]
    if line.settings.scenes:
        assert all(scene.is_valid for scene in tables.scenes)
        limit, shown = recap_limit(line, tables), shown_recap(line, tables)
        if limit and not line.recap_chosen and not excludes_person_version(line, tables):
            assert shown is not None
            assert shown.last_unit == limit or (shown.by_person and shown.last_unit > limit)
    if line.settings.diary:
        assert {(entry.entry_id, entry.current_hash) for entry in stale_entries(tables)} <= line.unwritten
    check_hidden(line, tables)


def check_hidden(line: NarrativeLine, tables: Tables) -> None:
    """Check that auto-hide hides exactly its scenes, except for messages that a person has hidden or shown.

    Scenes stay in sight if otherwise fewer than `keep` messages that are sent would be left.
    """
    settings, shown = line.settings, shown_recap(line, tables)
    hides = settings.scenes and settings.auto_hide is not None
    covered = shown.last_unit if shown else 0
    in_sight = [one.seq for one in drop_unsent([one for one in line.not_deleted if one.sendable_if_shown])]
    kept_from = in_sight[-settings.keep] if len(in_sight) >= settings.keep else 1
    hidden: set[int] = set()
    for scene in old_scenes(line, tables, settings.auto_hide or 0) if hides else ():
        if scene.is_valid and scene.last_seq <= covered and scene.last_seq < kept_from:
            hidden |= set(range(scene.first_seq, scene.last_seq + 1))
    assert {message.seq for message in line.not_deleted if message.hidden_by_scenes} == {
        message.seq
        for message in line.not_deleted
        if message.seq in hidden and not (message.hidden or message.visibility_pinned)
    }


def check_inclusion(line: NarrativeLine, tables: Tables, snapshot: Snapshot, items: list[Json]) -> None:
    """Check that the version that represents a message is in the context and covers the message."""
    assert [item["seq"] for item in items] == [message.seq for message in line.not_deleted]
    sent_seqs = {message.seq for message in line.sent_from(snapshot.anchor)}
    for item, message in zip(items, line.not_deleted, strict=True):
        if message.seq in sent_seqs:
            assert item["status"] == "verbatim"
        for status, layer in (("summary", "summary"), ("recap", "scenes")):
            if item["status"] == status:
                assert item["by"] == f"{status}:{tables.context_cache[layer]['version']}"
                assert message.seq <= tables.context_cache[layer]["last_seq"]
