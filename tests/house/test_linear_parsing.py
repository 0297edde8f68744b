"""Parsing and judging the texts of models and people takes time in proportion to their length.

The time of a long text is compared with that of ten texts a tenth as long, both in the CPU time of this thread, so that
other processes do not matter. A quadratic pattern needs ten times as long, a linear one as long.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import thread_time
from typing import Any

import pytest

from app.consolidation.answers import parse_cut_off as parse_cut_off_learnt
from app.consolidation.answers import profile_for
from app.consolidation.certainty import tells_story
from app.consolidation.extractive import learn
from app.consolidation.importance import rate_sentence
from app.consolidation.safe_facts import find_facts
from app.diary.answers import DIARY_ENTRY_PROFILE, DIARY_PROFILE
from app.diary.refusals import declines
from app.facts.keys import normalise_key
from app.kit.tokens import count_tokens
from app.memories.dedupe import similarity
from app.memos.answer_json import close_json, json_as_lines
from app.memos.answer_lines import read_line
from app.memos.answers import MEMO_PROFILE, parse_cut_off
from app.memos.highlights import highlights_from_text
from app.scenes.answers import RECAP_PROFILE, SCENE_PROFILE, head_state
from app.scenes.detection.breaks import parse_scene_break
from app.summarising.answer_text import (
    MAX_ANSWER_CHARS,
    UnusableAnswer,
    refuses,
    says_nothing,
    says_only_nothing,
    spoken,
)
from app.summarising.extractive import Frequencies, extract, is_quote
from app.summarising.judging.judge import Material, Profile, judge
from app.summarising.judging.person import count_persons
from app.summarising.judging.repetition import find_repetition
from app.summarising.judging.speech import divide
from app.summarising.prose import read_prose
from app.summarising.quoting import quoted
from app.summarising.sentences import Kind, ends_sentence, split_sentences
from app.summarising.transcript import Utterance
from app.summary.answers import SUMMARY_PROFILE
from app.transfer.send_dates import read_send_date

Read = Callable[[str], object]

_RULES = "# Examples\n- Mira told Kai that she would never go back there."
_MOST_TIMES = 1.5
_NEGLIGIBLE_S = 0.03
_MEASUREMENTS = 12  # a processor whose speed changes by half in a moment makes one of them false, not all
_HUGE = 50 if "TESTS_EXAMPLES" in os.environ else 20
"""How many times as long as the longest answer a huge one is; its time is still some ten times `_NEGLIGIBLE_S`."""


def _judged(profile: Profile[Any]) -> Read:
    def read(text: str) -> object:
        material = Material([text], names=("Mira",))
        return judge(text, profile, material, rules=_RULES, identify=lambda _: "en")

    return read


def _extract(text: str) -> list[str]:
    said = [Utterance(1, "user", "Kai", text[:8_000])]
    return extract(said, said, count_tokens=count_tokens)


def _learn(text: str) -> object:
    said = [Utterance(1, "user", "Kai", text[:8_000])]
    return learn(said, Frequencies.of(said), count_tokens=count_tokens)


def _rate(text: str) -> float:
    return rate_sentence(text[:8_000], Kind.STATEMENT, 0)


READERS: dict[str, Read] = {
    "memos": _judged(MEMO_PROFILE),
    "memos cut off": parse_cut_off,
    "summary": _judged(SUMMARY_PROFILE),
    "diary": _judged(DIARY_PROFILE),
    "diary entry": _judged(DIARY_ENTRY_PROFILE),
    "scene": _judged(SCENE_PROFILE),
    "recap": _judged(RECAP_PROFILE),
    "scene break": parse_scene_break,
    "prose": read_prose,
    "line": read_line,
    "JSON": json_as_lines,
    "JSON cut off": close_json,
    "highlights of a person": highlights_from_text,
    "state": lambda text: head_state(f"# State\n{text}", "a cave"),
    "nothing": says_nothing,
    "only nothing": says_only_nothing,
    "refusal": refuses,
    "diary refusal": declines,
    "speech": divide,
    "persons": lambda text: count_persons(text, "en", ("Mira",)),
    "repetition": lambda text: find_repetition(text, ""),
    "sentences": lambda text: list(split_sentences(text, 6)),
    "end of a sentence": ends_sentence,
    "quote line": is_quote,
    "quoted": quoted,
    "extractive": _extract,
    "send date": read_send_date,
    "consolidation": _learn,
    "importance": _rate,
    "story": tells_story,
    "safe facts": lambda text: list(find_facts(Utterance(1, "user", "Kai", text[:8_000]))),
    "key of a fact": normalise_key,
    "learnt": _judged(profile_for((1, 2, 3))),
    "learnt cut off": lambda text: parse_cut_off_learnt(text, (1, 2, 3)),
    "similarity": lambda text: similarity(text, text[::-1]),
}
"""The functions that read an answer of a model or the text of a person."""

PUMPS = (
    *(" ", "\n", "\t", " \n", "\u3000", "*", "**", "* ", "_", "#", "# ", "-", "- ", "`", "```", "```\n", "~~~"),
    *("<", "<think>", "</think>", "<think ", "<a>", "[", "(", "{", "[]", "{}", '{"', '"', '",', "}\n{", ",", ", "),
    *("“", "“a” ", '"a" ', "'a ", "*a ", "*a* ", "1", "1. ", "1.1", "a", "a ", "a\n", "a:", ": ", "a: b\n", "  - a:\n"),
    *(
        ".",
        ". ",
        "... ",
        "? ",
        "。",
        "一",
        "...",
        "!",
        "Highlight 1:",
        "【",
        "【Highlight 1】",
        "(milestone) ",
        "(category)",
    ),
    *("milestone: ", "here is ", "nothing ", "no new ", "I can't ", "sorry ", "as an ai ", "title: ", "scene: a\n"),
    *('{"memory": "', '{"from": [1]}', '"from": [', "{,}", "\\", '\\"', "[1] ", "(1, ", "#1-", "fact: "),
    *("break_at", "break_at:", "reason:", "<|", "<|end|>", "www.", "I ", "Kai said: ", " – ", "\u0301", "\u2028", "😀"),
    *("Mira: a. ", "[10/22 19:00] ", "Error: ", 'f("a")', "<s>a", "<s>a</s>", "<tool_call>"),
)
"""The repeated parts of hostile texts."""

GAPS = (" ", "\n", "\t", " \n", "\u3000", "*", "**", "-", "- ", ", ", "}\n{", "1", "a ")
"""The repeated parts that also stand after the beginning of an answer."""

_BEGINNING = "# Outcomes\n- a\n# State\n【Highlight"
_CHARS = MAX_ANSWER_CHARS // 2


@pytest.mark.parametrize("name", READERS)
def test_reading_takes_time_in_proportion(name: str) -> None:
    cases = [*(("", pump) for pump in PUMPS), *((_BEGINNING, pump) for pump in GAPS)]
    assert [case for case in cases if _is_slow(READERS[name], partial(_text, *case), _CHARS)] == []


@pytest.mark.parametrize("name", ["memos", "summary", "scene", "scene break", "learnt"])
def test_a_huge_answer_takes_time_in_proportion(name: str) -> None:
    huge = _HUGE * MAX_ANSWER_CHARS
    pumps = (" ", "\n", " \n", "<think>", "<think ", "</think>", "a ", "<|", "{", "\u3000")
    assert [p for p in pumps if _is_slow(READERS[name], partial(_text, "", p), huge)] == []


def test_a_slow_pattern_would_be_noticed() -> None:
    def quadratic(text: str) -> None:
        for start in range(0, len(text), 4):
            text.count("zz", start)

    assert _is_slow(quadratic, lambda chars: "a" * chars, 2 * MAX_ANSWER_CHARS)
    assert not _is_slow(list, lambda chars: "a" * chars, 50 * MAX_ANSWER_CHARS)


def _text(before: str, pump: str, chars: int) -> str:
    return f"{before}{pump * ((chars - len(before)) // len(pump))}!"


def _is_slow(read: Read, text_of: Callable[[int], str], chars: int) -> bool:
    """Whether a text takes more than 1.5 times as long as ten a tenth as long, in each of several measurements."""
    long, short = text_of(chars), text_of(chars // 10)
    for _ in range(_MEASUREMENTS):
        long_s = _time_s(read, long)
        if long_s < _NEGLIGIBLE_S or _takes_at_least(long_s / _MOST_TIMES, read, short):
            return False
    return True


def _takes_at_least(least_s: float, read: Read, text: str) -> bool:
    """Whether ten readings of a text take as long as this; the readings end once they have."""
    left_s = least_s
    for _ in range(10):
        left_s -= _time_s(read, text)
        if left_s <= 0:
            return True
    return False


def _time_s(read: Read, text: str) -> float:
    begun = thread_time()
    with suppress(UnusableAnswer):
        read(text)
    return thread_time() - begun


@pytest.mark.parametrize("name", ["summary", "diary", "scene", "scene break"])
def test_an_answer_that_is_far_too_long_is_refused(name: str) -> None:
    with pytest.raises(UnusableAnswer, match="far too long"):
        READERS[name]("Mira gave Kai the key. " * 1_000)


def test_reasoning_and_white_space_do_not_count() -> None:
    answer = f"<think>{'Let me see. ' * 9_000}</think>\n【Highlight 1】: Mira gave Kai{' ' * 30_000}a key.{' ' * 9_000}"
    assert spoken(f"{answer}{chr(10) * 30_000}").split() == ["【Highlight", "1】:", "Mira", "gave", "Kai", "a", "key."]
