"""Scenes in the present tense: refused once, because a report or a diary entry can be in the present tense too."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.diary.answers import DIARY_ENTRY_PROFILE, DIARY_PROFILE
from app.kit.refusals import Refusal
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, Profile, judge
from app.summarising.judging.languages import identify
from app.summary.answers import SUMMARY_PROFILE

TEXTS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("tenses.toml").read_text(encoding="utf-8"))
MESSAGES = (
    "Mira: *sits down* Do you still want to go to the islands with me, in June, when the ferry runs again?",
    "Kai: More than anything. I bought the tickets yesterday. *He puts the music box back on the shelf.*",
)
MATERIAL = Material(MESSAGES, name="Kai", names=("Mira", "Kai"))


def refuse_once(answer: str, profile: Profile[Any], material: Material = MATERIAL) -> None:
    with pytest.raises(UnusableAnswer, match="present tense") as caught:
        judge(answer, profile, material, identify=identify)
    refusal = Refusal(caught.value.kind, str(caught.value))
    assert refusal.kind == "story"
    assert judge(answer, profile, material, refused=[refusal], identify=identify) == answer


def test_the_corpus_has_enough_diaries() -> None:
    assert len(TEXTS["diaries"]) >= 20


@pytest.mark.parametrize("profile", [DIARY_ENTRY_PROFILE, DIARY_PROFILE], ids=["entry", "fold"])
@pytest.mark.parametrize("entry", TEXTS["diaries"], ids=lambda text: text[:30])
def test_a_diary_may_be_in_any_tense(entry: str, profile: Profile[Any]) -> None:
    assert judge(entry, profile, MATERIAL, identify=identify) == entry


@pytest.mark.parametrize("profile", [DIARY_ENTRY_PROFILE, DIARY_PROFILE], ids=["entry", "fold"])
@pytest.mark.parametrize("scene", TEXTS["scenes"], ids=lambda text: text[:30])
def test_a_scene_is_no_diary(scene: str, profile: Profile[Any]) -> None:
    refuse_once(scene, profile)


def test_a_fold_may_have_the_tense_of_its_entries() -> None:
    scene = TEXTS["scenes"][2]
    entries = Material(["Came home late.", TEXTS["scenes"][0]], name="Kai")
    assert judge(scene, DIARY_PROFILE, entries, identify=identify) == scene


@pytest.mark.parametrize("story", TEXTS["stories"], ids=lambda text: text[:30])
def test_a_story_in_the_present_tense_is_no_summary(story: str) -> None:
    refuse_once(story, SUMMARY_PROFILE)


@pytest.mark.parametrize("report", TEXTS["reports"], ids=lambda text: text[:30])
def test_a_report_may_use_the_present_tense(report: str) -> None:
    assert judge(report, SUMMARY_PROFILE, MATERIAL, identify=identify) == report


def test_a_summary_may_have_the_tense_of_a_persons_text() -> None:
    first, second = TEXTS["stories"]
    for material in (Material(MESSAGES, kept=first), Material(MESSAGES, former=first)):
        answer = f"{first} {second}"
        assert judge(answer, SUMMARY_PROFILE, material, identify=identify) == answer
