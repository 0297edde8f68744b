"""How much of a former text a new one keeps."""

import tomllib
from pathlib import Path

import pytest

from app.diary.answers import DIARY_PROFILE
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, judge
from app.summarising.judging.languages import identify
from app.summarising.judging.retention import share_kept
from app.summary.answers import SUMMARY_PROFILE

FOLDS = tomllib.loads((Path(__file__).parent / "folds.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", sorted(FOLDS))
def test_a_fold_keeps_words_in_other_forms(language: str) -> None:
    texts = FOLDS[language]
    assert share_kept(texts["folded"], texts["former"], "") >= 0.3
    assert share_kept(texts["story"], texts["former"], "") < 0.15


def test_words_of_the_new_messages_do_not_count() -> None:
    former = FOLDS["de"]["former"]
    begin, end = former[:200], former[200:]
    assert share_kept(end, former, "") > 0.4
    assert share_kept(end, former, "") > share_kept(end, former, end[-80:])
    assert share_kept("", former, former) == 1.0
    assert share_kept(begin, former, begin) < 0.2


def test_a_text_with_few_words_is_kept_by_any_other() -> None:
    assert share_kept("The rain fell.", "Mira met Kai in April. " * 20, "") == 1.0


def test_a_diary_with_few_words_may_drop_all_of_them() -> None:
    former = FOLDS["de"]["former"]
    texts = former[:140]
    assert share_kept("", former, texts) == 0.0
    assert share_kept("", former, texts, min_words=40) == 1.0


@pytest.mark.parametrize("language", sorted(FOLDS))
def test_a_diary_may_shrink_but_not_be_forgotten(language: str) -> None:
    texts = FOLDS[language]
    long = Material(["…"], f"{texts['former']}\n" * 3, language=language)
    assert judge(texts["folded"], DIARY_PROFILE, long, identify=identify)
    with pytest.raises(UnusableAnswer, match="forgets nearly everything"):
        judge(texts["story"], DIARY_PROFILE, long, identify=identify)
    other = next(FOLDS[name]["folded"] for name in ("de", "ru") if name != language)
    translated = Material(["…"], long.former, language="ru" if language == "de" else "de")
    assert judge(other, DIARY_PROFILE, translated, identify=identify)


def test_a_translated_summary_is_not_shrunk() -> None:
    former = FOLDS["de"]["former"]
    english = (
        "In April Mira came to the harbour town to repair clocks and met Kai above the shut museum. She mended his "
        "mother's clock, and from 3 May the back room was her workshop. On 20 May he spoke of his drowned brother, and "
        "came with cherries on the next morning to say that he was sorry."
    )
    assert judge(english, SUMMARY_PROFILE, Material(["Hi."], former, language="en"), identify=identify) == english
