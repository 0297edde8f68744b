"""What must be true of a line's narratives after every step, and what once all work is done: tables against model."""

from itertools import pairwise

from app.chats.eligibility import Filters
from app.narratives.service import NO_SOURCE
from tests import conversation_chains as chains
from tests.conversation_service import WORD, Seen
from tests.conversation_shown import (
    compact,
    expected_shown,
    find_limit,
    leaves_out_written,
    old_scenes,
    read_shown_words,
    shown_recap,
)
from tests.conversation_tables import Tables, Version
from tests.conversation_telling_model import TellingLine
from tests.talk import Json

_EVERYTHING = Filters(include_system=True)


def check_telling(line: TellingLine, tables: Tables, seen: Seen, *, thorough: bool) -> None:
    """Everything that holds at any time; with `thorough` models have left out nothing so far."""
    line.notice(tables)
    for narrative in tables.narratives:
        check_chain(line, tables, narrative)
    check_scenes(line, tables)
    check_entries(line, tables, thorough=thorough)
    check_words(line, tables, thorough=thorough)
    assert compact(tables.shown) == expected_shown(line, tables, seen.anchor)
    check_shown_words(line, tables, seen)


# --- versions ---


def check_chain(line: TellingLine, tables: Tables, narrative: tuple[str, str]) -> None:
    """One version is current, each follows its base without a hole, and each hash is that of what its step says."""
    versions = tables.of(narrative)
    assert len([one for one in versions if one.current]) <= 1
    chain = chains.current_chain(versions)
    for one in versions:
        assert one.base_version is None or one.base_version < one.version
        if one.first_place <= one.last_place and not _was_cut(one):
            assert one.current_hash == chains.step_hash(line, tables, one), one
        assert one.last_place <= (line.head if one.layer != "diary" else max(e.number for e in tables.entries))
    for base, one in pairwise(chain):
        assert one.base_version == base.version
        assert one.first_place == base.last_place + 1, (base, one)
    for one in chain[:1]:
        if one.base_version is None:
            assert one.first_place == 1
        else:
            assert one.by_person, "only what a person wrote stays where its base was cut off"


def _was_cut(version: Version) -> bool:
    """Whether a person's text was cut off in its range: it then says what no range says."""
    return version.by_person and len(version.current_hash) > len(NO_SOURCE)


# --- scenes and entries ---


def check_scenes(line: TellingLine, tables: Tables) -> None:
    """Closed scenes follow each other from the first message on, each ends with a message that is there."""
    firsts = [1, *(scene.last_seq + 1 for scene in tables.scenes)]
    assert [scene.first_seq for scene in tables.scenes] == firsts[:-1]
    assert [scene.number for scene in tables.scenes] == list(range(1, len(tables.scenes) + 1))
    for scene in tables.scenes:
        assert scene.first_seq <= scene.last_seq <= line.head
        assert not line.messages[scene.last_seq - 1].deleted
        assert scene.current_hash == chains.messages_hash(line, scene.first_seq, scene.last_seq, scene.filters)
    assert all(scene.last_seq <= line.head for scene in tables.lifted)


def check_entries(line: TellingLine, tables: Tables, *, thorough: bool) -> None:
    """Numbers are given once, and what the service wrote is held against what its messages say."""
    numbers = [entry.number for entry in tables.entries]
    assert len(numbers) == len(set(numbers))
    for entry in tables.entries:
        assert entry.at_seq <= line.head
        if entry.first_seq is None or entry.last_seq is None:
            continue
        assert entry.last_seq <= entry.at_seq
        if not entry.deleted:
            says = chains.messages_hash(line, entry.first_seq, entry.last_seq, entry.filters)
            assert entry.current_hash == says
        if entry.holds() and entry.origin != "person":
            words = chains.messages_words(line, entry.first_seq, entry.last_seq, entry.filters)
            _check_told(WORD.findall(entry.content), words, thorough=thorough)


# --- words ---


def check_words(line: TellingLine, tables: Tables, *, thorough: bool) -> None:
    """Every true version of the service tells of its base and its step, in this order, and of nothing else."""
    for narrative in tables.narratives:
        for one in chains.true_ones(chains.current_chain(tables.of(narrative))):
            if one.by_person or one.deleted:
                continue
            base_text = "" if one.base_version is None else line.texts[*narrative, one.base_version][-1]
            words = [*WORD.findall(base_text), *chains.step_words(line, tables, one)]
            _check_told(WORD.findall(one.text), words, thorough=thorough)
    for scene in tables.scenes:
        if scene.holds and not scene.is_written:
            words = chains.messages_words(line, scene.first_seq, scene.last_seq, scene.filters)
            _check_told(WORD.findall(scene.recap), words, thorough=thorough)


def check_shown_words(line: TellingLine, tables: Tables, seen: Seen) -> None:
    """No word of a message that is gone, set aside or unselected is shown; and the context has what is, in order."""
    said = {word for one in chains.eligible(line, 1, line.head, _EVERYTHING) for word in WORD.findall(one.text)}
    told = read_shown_words(tables)
    assert {word for words in told.values() for word in words if word.startswith("w")} <= said
    pinned = WORD.findall(" ".join(one.text for one in line.pinned(seen.anchor)))
    memos = WORD.findall(" ".join(memo.text for memo in line.shown(seen.anchor)))
    history = WORD.findall(" ".join(one.text for one in line.sent_from(seen.anchor)))
    ahead, in_order = (told["recap"], []) if line.rules.position == "before_prompt" else ([], told["recap"])
    if line.rules.position == "none":
        in_order = []
    assert seen.words == [*ahead, *pinned, *told["diary"], *in_order, *told["summary"], *memos, *history]


def _check_told(found: list[str], words: list[str], *, thorough: bool) -> None:
    if thorough:
        assert found == words
    else:
        rest = iter(words)
        assert all(word in rest for word in found), (found, words)


# --- the anchor ---


def check_anchor(line: TellingLine, seen: Seen) -> None:
    """Enough is sent from the anchor on, wherever it has moved; or all before it is out of sight."""
    cut = seen.row["last_cut"]
    cut_seq = cut["at_seq"] if cut else 1
    passed = line.rules.scenes or seen.anchor == line.anchor  # what scenes hide, now or formerly
    assert seen.anchor == cut_seq or (seen.anchor > cut_seq and passed)
    if seen.anchor != line.anchor:
        assert not [said.seq for said in line.sent_from(cut_seq) if said.seq < seen.anchor]
    left = len(line.sent_from(seen.anchor))
    is_all = left == len(line.sent_from(1))
    assert left >= line.rules.keep or is_all
    if seen.anchor > line.anchor and cut and cut_seq == seen.anchor and cut["reason"] != "rewind":
        assert is_all or line.keeps(seen.anchor, line.anchor)


# --- once all work is done ---


def check_settled(line: TellingLine, tables: Tables, seen: Seen) -> None:
    """All that is to be told is told, and what auto-hide hides is hidden."""
    assert seen.work == {}
    chain = chains.current_chain(tables.of(("summary", "")))
    if line.rules.summary and not any(one.last_place >= seen.anchor for one in chains.true_ones(chain)):
        told_seq = tables.shown.get("summary", {}).get("last_seq", 0)
        assert not [said.seq for said in line.sent_from(told_seq + 1) if said.seq < seen.anchor]
    if line.rules.scenes:
        assert all(scene.holds for scene in tables.scenes)
        limit, shown = find_limit(line, tables), shown_recap(line, tables)
        if limit and not line.chosen and not leaves_out_written(line, tables):
            assert shown is not None
            assert shown.last_place == limit or (shown.by_person and shown.last_place > limit)
    if line.rules.diary:
        assert all(entry.holds() or entry.is_empty for entry in tables.entries if not entry.deleted)
    check_hidden(line, tables)


def check_hidden(line: TellingLine, tables: Tables) -> None:
    """Hidden by scenes is what the rule says, but for what is a person's."""
    rules, shown = line.rules, shown_recap(line, tables)
    hides = rules.scenes and rules.auto_hide is not None
    covered = shown.last_place if shown else 0
    hidden: set[int] = set()
    for scene in old_scenes(line, tables, rules.auto_hide or 0) if hides else ():
        if scene.holds and scene.last_seq <= covered:
            hidden |= set(range(scene.first_seq, scene.last_seq + 1))
    assert {said.seq for said in line.living if said.out_of_sight} == {
        said.seq for said in line.living if said.seq in hidden and not (said.hidden or said.kept_shown)
    }


def check_inclusion(line: TellingLine, tables: Tables, seen: Seen, items: list[Json]) -> None:
    """What is said to stand for a message is what is shown, and reaches it."""
    assert [item["seq"] for item in items] == [said.seq for said in line.living]
    for item, said in zip(items, line.living, strict=True):
        if said.seq >= seen.anchor and said.sent:
            assert item["status"] == "verbatim"
        for status, layer in (("summary", "summary"), ("recap", "scenes")):
            if item["status"] == status:
                assert item["by"] == f"{status}:{tables.shown[layer]['version']}"
                assert said.seq <= tables.shown[layer]["last_seq"]
