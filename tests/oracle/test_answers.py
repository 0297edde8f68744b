"""The scripted answers of the oracle are judged as their names say."""

from itertools import product
from typing import Any

import pytest

from app.consolidation.answers import profile_for
from app.consolidation.prompts import CONSOLIDATION
from app.kit.refusals import Refusal
from app.scenes.generation import break_profile
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, Profile, judge
from app.summarising.judging.languages import identify
from tests.oracle.misbehaviour import DATA, WRAPPINGS, misbehaviours, repeats_misbehaviour
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


def judge_data(prompt: str, answer: str, refused: tuple[Refusal, ...] = ()) -> Any:
    """Return the value of an answer to a prompt that asks for data, or the refusal."""
    if prompt == "break":
        profile: Profile[Any] = break_profile(range(1, 9))
    else:
        profile = profile_for((1, 2, 3))
    material = Material(TEXTS if prompt == "consolidation" else (), names=("Mira", "Kai"))
    try:
        return judge(answer, profile, material, rules=CONSOLIDATION.system, refused=refused, identify=identify)
    except UnusableAnswer as error:
        return Refusal(error.kind, str(error))


@pytest.mark.parametrize("prompt", DATA)
def test_misbehaviours_with_data_are_refused_each_time(prompt: str) -> None:
    answers = [answer for kind in misbehaviours(prompt) for answer in kind if answer]
    for answer in answers:
        first = judge_data(prompt, answer)
        assert isinstance(first, Refusal), answer
        assert isinstance(judge_data(prompt, answer, (first,)), Refusal), answer
    for answer in DATA[prompt]["declined"]:
        assert judge_data(prompt, answer) == Refusal("declined", "the model refuses")


def test_good_answers_with_data_are_accepted() -> None:
    assert judge_data("break", '{"break_at": 4, "reason": "They leave."}') == (4, "They leave.")
    (learnt,) = judge_data("consolidation", '{"memory": "w7w 0f3a", "importance": 0.7, "from": [1]}')
    assert learnt.content == "w7w 0f3a"


def test_misbehaviours_are_found_in_memories() -> None:
    assert repeats_misbehaviour("They spoke. I'm sorry, but I can't help with that request.")
    assert not any(map(repeats_misbehaviour, [*GOOD.values(), *TEXTS]))
