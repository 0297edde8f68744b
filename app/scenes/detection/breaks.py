"""Where a scene may end, how a model's answer is read, and where a scene ends if there is no model. Pure.

A break is on the last message of a scene. A search for a break considers only breaks that make the scene long enough,
and none on the newest messages, which only give context.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import pairwise

from app.summarising.answer_text import UnusableAnswer, spoken, without_controls

MAX_REASON_CHARS = 300

NO_MODEL, NO_USABLE_ANSWER = "no model", "no usable answer"
"""Why a break was set at a pause in time and not by a model; the reason of the break begins with one of these."""

_MOST_BRACES = 200
_MAX_SEQ = 2**63 - 1
_NO_BREAK = {"", "null", "none", "nil", "no"}
_WRITTEN = re.compile(
    r"break[_ -]?at[\"'*`]{0,3}\s?[:：=]\s?[\"'*`]{0,3}(\d{1,19}(?![\d.])|null\b|none\b)", re.I
)  # also in invalid JSON: single quotes, an extra comma, an object that is cut off
_REASON = re.compile(r"reason[\"'*`]{0,3}\s?[:：=]\s?[\"'*`]{0,3}([^\n\"}]{1,300})", re.I)


def parse_scene_break(answer: str) -> tuple[int | None, str]:
    """Return the `seq` on which a scene ends, or None, and the reason in one line, or "". Raises UnusableAnswer."""
    heard = spoken(answer)
    found = list(_find_objects(heard)) or _find_written(heard)
    if not found:
        raise UnusableAnswer("the answer does not say where a scene ends")
    if len({seq for seq, _ in found}) > 1:
        raise UnusableAnswer("the answer names several breaks")
    seq, reason = found[0]
    return seq, " ".join(without_controls(reason).split())[:MAX_REASON_CHARS].rstrip()


def _find_objects(text: str) -> Iterator[tuple[int | None, str]]:
    """Yield the break and the reason from each JSON object in `text` that has the key of a break."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    for _ in range(_MOST_BRACES):
        if at < 0:
            return
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        fields = {re.sub(r"[\W_]", "", key).lower(): inner for key, inner in (value or {}).items()}
        if "breakat" in fields:
            reason = fields.get("reason")
            yield _read_seq(fields["breakat"]), reason if isinstance(reason, str) else ""
        at = text.find("{", end)


def _find_written(text: str) -> list[tuple[int | None, str]]:
    reason = _REASON.search(text)
    reason_text = reason[1].strip(" '*`,") if reason else ""
    bare = text.strip(" \n\t`*.\"'")
    written = [found[1] for found in _WRITTEN.finditer(text)]
    if not written and (bare.casefold() in {"null", "none"} or re.fullmatch(r"[0-9]{1,19}", bare)):
        written = [bare]
    return [(_read_seq(value), reason_text) for value in written]


def _read_seq(value: object) -> int | None:
    if isinstance(value, str):
        value = value.strip().lstrip("#")
        value = None if value.casefold() in _NO_BREAK else int(value) if re.fullmatch(r"[0-9]{1,19}", value) else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_SEQ):
        return value
    raise UnusableAnswer("the answer names a break that is no number of a message")


LONGEST_ANSWER_PAUSE = timedelta(hours=4)
"""Without a model, or if its answers cannot be used, a pause of this length or more can end a scene: after sleep, work
or travel, people usually begin a new scene. A shorter pause only means a late answer."""


def find_candidates(
    seqs: Sequence[int], *, before: int, min_messages: int, offset: int, lifted: AbstractSet[int]
) -> list[int]:
    """Return the seqs on which the open scene may end.

    Args:
        seqs: Consecutive eligible messages of the open scene, in order.
        before: How many eligible messages the scene has before `seqs`; more than `min_messages` need not be counted.
        min_messages: The minimum number of eligible messages of a scene.
        offset: How many messages at the end of `seqs` only give context.
        lifted: The seqs from which a break was removed.

    """
    judged = seqs[: max(len(seqs) - offset, 0)]
    return [seq for count, seq in enumerate(judged, start=before + 1) if count >= min_messages and seq not in lifted]


def object_to(break_at: int | None, candidates: Sequence[int]) -> str | None:
    """Return why an answer is not allowed, or None if it is allowed."""
    if break_at is None or break_at in candidates:
        return None
    if break_at > candidates[-1]:
        return f"{break_at} is a message that only gives context, or not a message at all"
    return f"{break_at} is not one of the possible answers"


def find_pause(
    seqs: Sequence[int], sent_at: Mapping[int, datetime], candidates: Sequence[int]
) -> tuple[int, timedelta] | None:
    """Return the candidate before the longest pause, with its length, or None if no pause is long enough.

    Args:
        seqs: Eligible messages of the open scene, in order.
        sent_at: When each of them was sent.
        candidates: Those of them on which the scene may end.

    """
    possible = frozenset(candidates)
    pauses = [(sent_at[after] - sent_at[seq], seq) for seq, after in pairwise(seqs) if seq in possible]
    long = [(pause, seq) for pause, seq in pauses if pause >= LONGEST_ANSWER_PAUSE]
    if not long:
        return None
    pause, seq = max(long, key=lambda found: found[0])
    return seq, pause
