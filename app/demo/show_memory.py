"""Formats the memory of each layer: memo book, diary, summary, scenes, running recap. Pure.

The functions take the items as the API returns them.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from app.demo.words import (
    BULLET,
    Calendar,
    count,
    fill,
    fill_lines,
    heading,
    join_seqs,
    part,
    word_author,
    word_range,
)
from app.scenes.detection.breaks import NO_USABLE_ANSWER

Listed = Mapping[str, Any]

_ENDINGS = {
    "person": "a break that a person set",
    "model": "a break that the model found",
    "time": "a pause",
    "cut": "a cut of the history",
}


def word_book(memos: Sequence[Listed], calendar: Calendar, anchor_seq: int) -> Iterator[str]:
    """Yield the lines of the memo book, grouped by where each memo is used.

    `anchor_seq` is the seq at which the history, the messages that are sent word for word, begins.
    """
    yield heading(f"The memo book: {count(len(memos), 'memo')} of {count(len(calendar), 'message')}")
    for use, group in groupby(memos, key=lambda memo: _word_use(memo, anchor_seq)):
        yield part(use)
        for memo in group:
            yield f"\n{memo['number']:>4}  {_word_span(memo, calendar)} · {_word_memo_author(memo)}"
            for text in _word_highlights(memo):
                yield fill(text, 6, BULLET)


def word_diary(character: str | None, entries: Sequence[Listed], folded: Listed, calendar: Calendar) -> Iterator[str]:
    """Yield the lines of a character's diary: its entries, and the text that older entries were folded into."""
    yield heading(f"{character or 'The character'}'s diary: {_count_entries(len(entries))}")
    if not entries:
        yield "\n" + fill(
            "Nothing was written: the character did not call save_memory, and the service wrote nothing for it.", 2
        )
    older = [entry for entry in entries if not entry["in_prompt"]]
    if older:
        yield from _word_entries("older: kept, and folded for the prompt", older, calendar)
    if folded["text"]:
        where = "these lines of the prompt" if folded["in_prompt"] else "these lines, in the prompt after the next cut"
        made = f"{_count_entries(folded['entries'])} folded into {where}, {word_author(folded)}"
        yield f"{part(made)}\n"
        yield from _word_narrative(folded, 6)
    if newest := [entry for entry in entries if entry["in_prompt"]]:
        yield from _word_entries("word for word in the prompt", newest, calendar)


def word_summary(summary: Listed) -> Iterator[str]:
    """Yield the lines of the rolling summary."""
    if summary["version"] is None:
        yield heading("The summary: none yet")
        yield "\n" + fill("It begins once there are more messages than are kept word for word.", 2)
        return
    covered = f" of messages {word_range(summary['first_seq'], summary['last_seq'])}" if summary["last_seq"] else ""
    yield heading(f"The summary{covered}: version {summary['version']}, {word_author(summary)}")
    yield ""
    if summary["kept_text"]:
        yield from fill_lines(summary["kept_text"], 2)
        yield ""
    yield from _word_narrative(summary, 2)


def word_scenes(scenes: Sequence[Listed], calendar: Calendar, hidden_seqs: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the scenes, each with its recap and why it ends. Auto-hide has hidden `hidden_seqs`."""
    closed = [scene for scene in scenes if not scene["open"]]
    yield heading(f"The scenes: {len(closed)} closed, {'one' if len(closed) < len(scenes) else 'none'} open")
    for hint in _list_pause_hints([scene["reason"] or "" for scene in closed if scene["closed_by"] == "time"]):
        yield "\n" + fill(hint, 2)
    for scene in scenes:
        last_seq = scene["last_seq"] or scene["first_seq"] + scene["messages"] - 1
        author = "still open" if scene["open"] else _word_scene_author(scene)
        yield f"\n{scene['number']:>4}  {calendar.word_span(scene['first_seq'], last_seq)} · {author}"
        if scene["title"]:
            yield fill(scene["title"], 6)
        yield from _word_recap(scene["recap"] or "", 8)
        if not scene["open"]:
            reason = f" ({scene['reason']})" if scene["reason"] else ""
            yield fill(f"It ends with {_ENDINGS[scene['closed_by']]}{reason}.", 6)
    if hidden_seqs:
        ranges = ", ".join(word_range(*one) for one in join_seqs(hidden_seqs))
        yield "\n" + fill(f"Auto-hide leaves only the newest scenes in sight. Messages {ranges} are hidden.", 2)


def word_recap(recap: Listed) -> Iterator[str]:
    """Yield the lines of the running recap."""
    if recap["version"] is None:
        yield heading("The running recap: none yet")
        yield "\n" + fill("It begins with the first scene that ends.", 2)
        return
    covered = f" of messages {word_range(recap['first_seq'], recap['last_seq'])}" if recap["last_seq"] else ""
    yield heading(f"The running recap{covered}: version {recap['version']}, {word_author(recap)}")
    yield ""
    yield from _word_recap(recap["text"], 4)


def _word_use(memo: Listed, anchor_seq: int) -> str:
    if memo["status"] != "ready":
        return "no memo"
    if memo["in_prompt"]:
        return "in the prompt"
    if memo["first_seq"] is not None and memo["last_seq"] >= anchor_seq:
        return "waiting: their messages are still sent word for word"
    return "only in the book: no longer in the prompt"


def _word_memo_author(memo: Listed) -> str:
    match memo["status"]:
        case "empty":
            return "nothing memorable"
        case "ready":
            return word_author(memo)
        case status:
            return f"{status}: {memo['error'] or 'not written yet'}"


def _word_highlights(memo: Listed) -> Iterator[str]:
    for highlight in memo["highlights"]:
        category = highlight["category"]
        yield f"{highlight['text']} ({category.replace('_', ' ')})" if category else highlight["text"]


def _word_span(memo: Listed, calendar: Calendar) -> str:
    if memo["first_seq"] is None:
        return f"after message {memo['after_seq']}"
    return calendar.word_span(memo["first_seq"], memo["last_seq"])


def _word_entries(title: str, entries: Sequence[Listed], calendar: Calendar) -> Iterator[str]:
    yield part(title)
    for entry in entries:
        day = calendar.word_day(entry["at_seq"])
        yield f"\n  {day}{' · ' if day else ''}after message {entry['at_seq']}{_word_entry_author(entry)}"
        yield from fill_lines(entry["content"], 6)


def _word_narrative(version: Listed, indent: int) -> Iterator[str]:
    """Yield the text of a narrative: prose, or a list of quotations if no model wrote it."""
    yield from fill_lines(version["text"], indent, BULLET if version["origin"] == "extractive" else "")


def _count_entries(number: int) -> str:
    return count(number, "entry", "entries")


def _word_entry_author(entry: Listed) -> str:
    """Return a note on who wrote an entry, or an empty string if the character itself did."""
    if entry["origin"] == "tool":
        return ""
    return " · written by a person" if entry["origin"] == "person" else f" · written for it by {entry['model']}"


def _word_scene_author(scene: Listed) -> str:
    match scene["status"]:
        case "empty":
            return "nothing to recap"
        case "ready":
            return word_author(scene)
        case status:
            return f"{status}: {scene['error'] or 'no recap yet'}"


def _list_pause_hints(reasons: Sequence[str]) -> Iterator[str]:
    """Yield hints about why scenes end at pauses. `reasons` has the reason of each break that was set at a pause."""
    refused = [reason.startswith(NO_USABLE_ANSWER) for reason in reasons]
    if not all(refused):
        yield "Without a model, scenes end where the story paused longest."
    if any(refused):
        yield "The model's answers about where scenes end were refused; such scenes end where the story paused longest."


def _word_recap(recap: str, indent: int) -> Iterator[str]:
    """Yield outcomes, threads and state, without headings that have no lines."""
    title = ""
    for line in recap.splitlines():
        if line.startswith("# "):
            title = line.removeprefix("# ")
        elif line.strip():
            if title:
                yield f"{' ' * (indent - 2)}{title}:"
                title = ""
            yield from fill_lines(line, indent)
