"""The scripted answers of the oracle are judged as their names say."""

from itertools import product
from typing import Any

import pytest

from app.kit.refusals import Refusal
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, judge
from app.summarising.judging.languages import identify
from tests.oracle.misbehaviour import WRAPPINGS, misbehaviours, repeats_misbehaviour
from tests.summarising.judging.prompts import JUDGED
from tests.summarising.judging.test_judge import PROMPTS as PROFILES

TEXTS = ("lamp w7w", "lamp w8w", "lamp w9w")
FORMER = {
    "summary": "They spoke of w1w, w2w.",
    "recap": "# Outcomes\n- They spoke of w1w, w2w.",
    "diary": "I remember p1p, p2p.",
}
GOOD = {
    "memo": "【Highlight 1】: (milestone) They spoke of w7w, w8w.\n【Highlight 2】: (milestone) They spoke of w9w.",
    "summary": "They spoke of w1w, w2w, w7w, w8w, w9w.",
    "scene_recap": "Title: A lamp\n# Outcomes\n- They spoke of w7w, w8w, w9w.\n# Threads\n# State",
    "recap": "# Outcomes\n- They spoke of w1w, w2w, w7w, w8w, w9w.\n# Threads\n# State",
    "diary": "I remember p1p, p2p, w7w, w8w, w9w.",
    "diary_entry": "I said w7w, w8w, w9w.",
}
NOTHING = {"memo": "NONE", "diary_entry": "NONE"}


def verdict(prompt: str, answer: str, former: str, refused: tuple[Refusal, ...] = (), name: str = "Kai") -> Any:
    """Return the value of an answer, or the refusal. `name` is that of the character."""
    wording, profile = PROFILES[prompt]
    material = Material(TEXTS, former, name=name, names=("Mira", name))
    try:
        return judge(answer, profile, material, rules=wording.system, refused=refused, identify=identify)
    except UnusableAnswer as error:
        return Refusal(error.kind, str(error))


@pytest.mark.parametrize("prompt", JUDGED)
def test_misbehaviours_are_refused_each_time(prompt: str) -> None:
    kinds = misbehaviours(prompt)
    assert len(kinds) >= 4
    answers = [answer for kind in kinds for answer in kind if answer]  # the client refuses an empty text
    for answer, former, name in product(answers, {"", FORMER.get(prompt, "")}, ("Kai", "Noor")):
        first = verdict(prompt, answer, former, name=name)
        assert isinstance(first, Refusal), answer
        assert isinstance(verdict(prompt, answer, former, (first,), name), Refusal), answer


@pytest.mark.parametrize("prompt", JUDGED)
@pytest.mark.parametrize("wrapping", range(len(WRAPPINGS)))
def test_wrapped_answers_are_read_as_bare_ones(prompt: str, wrapping: int) -> None:
    for good, former in product(filter(None, [GOOD[prompt], NOTHING.get(prompt)]), {"", FORMER.get(prompt, "")}):
        expected = verdict(prompt, good, former)
        assert not isinstance(expected, Refusal)
        assert verdict(prompt, WRAPPINGS[wrapping](prompt, good), former) == expected


def test_misbehaviours_are_found_in_memories() -> None:
    assert repeats_misbehaviour("They spoke. I'm sorry, but I can't help with that request.")
    assert not any(map(repeats_misbehaviour, [*GOOD.values(), *TEXTS]))
