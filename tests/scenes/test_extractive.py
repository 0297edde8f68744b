"""Extractive recaps contain only text from messages or from people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import count_tokens
from app.scenes.answer_parts import MAX_TITLE_CHARS
from app.scenes.answers import SceneText, render_recap
from app.scenes.extractive import RECAP_TOKENS, SCENE_TOKENS, fold_quotes, quote_scene, shorten_title, split_parts
from app.summarising.transcript import Utterance
from tests.read_counts import CountedList

SAID = [
    Utterance(
        1, "user", "Mira", "I promised my brother Jonas that I would bring the brass key back to the lighthouse."
    ),
    Utterance(2, "assistant", "Kai", "Okay, sure."),
    Utterance(
        3, "user", "Mira", "The lighthouse keeper Odette was murdered on 14 June, and nobody in Port Ellery knows."
    ),
]
LINES = st.lists(st.text("abcdefgh ", min_size=1, max_size=60).map(str.strip).filter(bool), max_size=30)


def test_without_a_model_a_scene_has_only_quoted_outcomes() -> None:
    text = quote_scene(SAID, count_tokens=count_tokens)
    assert text is not None
    for line in text.outcomes.splitlines():
        quoted = line.split("“")[1].strip("”…")
        assert any(quoted in said.text for said in SAID)
    assert (text.threads, text.state) == ("", "")
    assert text.title is not None
    assert len(text.title) <= MAX_TITLE_CHARS
    assert text.title.startswith("Mira")


def test_small_talk_gives_no_scene_recap() -> None:
    said = [Utterance(n, "user", "Mira", text) for n, text in enumerate(["Hi!", "Okay.", "lol"], start=1)]
    assert quote_scene(said, count_tokens=count_tokens) is None


def test_the_words_of_a_scene_are_counted_once() -> None:
    said = CountedList(SAID * 200)
    assert quote_scene(said, count_tokens=count_tokens) is not None
    assert said.reads <= 5 * len(said)


def test_a_long_scene_is_quoted_within_its_room() -> None:
    said = [
        Utterance(n, "user", "Mira", f"I gave Kai the letter number {n} of Captain Voss at pier {n} in Port Ellery.")
        for n in range(1, 201)
    ]
    text = quote_scene(said, count_tokens=count_tokens)
    assert text is not None
    assert count_tokens(text.outcomes) <= SCENE_TOKENS
    assert "number 1 " in text.outcomes
    assert "19" in text.outcomes.splitlines()[-1]


def test_the_running_recap_without_a_model_puts_scenes_together() -> None:
    first = render_recap(SceneText("A", "- Kai met Mira.", "- Who sent the letter?", "- place: the pier\n- time: noon"))
    second = render_recap(SceneText("B", "- Mira left.", "- Who sent the letter?", "- Place: the ferry"))
    assert fold_quotes(fold_quotes("", [first], count_tokens=count_tokens), [second], count_tokens=count_tokens) == (
        "# Outcomes\n- Kai met Mira.\n- Mira left.\n\n# Threads\n- Who sent the letter?\n\n"
        "# State\n- Place: the ferry\n- time: noon"
    )


def test_text_by_a_person_without_headings_is_an_outcome() -> None:
    told = fold_quotes("They met at the pier.\nIt rained.", ["Kai left."], count_tokens=count_tokens)
    assert split_parts(told) == (["They met at the pier.", "It rained.", "Kai left."], [], [])


def test_a_persons_notes_per_character_keep_their_groups() -> None:
    first = "# State\nKai:\n- place: the pier\nMira:\n- place: the ferry"
    second = "# State\n- Kai:\n  - place: the mill\n- Mira:\n  - arm: broken"
    assert fold_quotes(first, [second], count_tokens=count_tokens) == (
        "# State\n- Kai, place: the mill\n- Mira, place: the ferry\n- Mira, arm: broken"
    )


@pytest.mark.parametrize("form", ["- {}:\n  - mood: {}\n  - place: {}", "{}:\n- mood: {}\n- place: {}"])
def test_groups_of_different_scenes_are_not_merged(form: str) -> None:
    scenes = [form.format(*said) for said in (("Mira", "calm", "the pier"), ("Kai", "furious", "the lamp room"))]
    recap = ""
    for state in scenes:
        recap = fold_quotes(recap, [f"# State\n{state}"], count_tokens=count_tokens)
    assert recap == (
        "# State\n- Mira, mood: calm\n- Mira, place: the pier\n- Kai, mood: furious\n- Kai, place: the lamp room"
    )


def test_the_heading_of_each_scenes_state_names_no_group() -> None:
    states = [f"# State\nAt the end of the scene:\n- place: {place}" for place in ("the pier", "the mill")]
    assert fold_quotes(states[0], states[1:], count_tokens=count_tokens) == states[1]


@pytest.mark.parametrize(
    "headings",
    [
        ["At the end of the scene:", None],
        [None, "At the end of the scene:"],
        ["At the end of scene 1:", "At the end of scene 2:"],
        ["Scene 1:", "Scene 2:"],
    ],
)
def test_a_heading_that_only_some_scenes_have_names_no_group(headings: list[str | None]) -> None:
    recap = ""
    for heading, where in zip(headings, ("the pier", "the mill"), strict=True):
        state = "\n".join([*([heading] if heading else []), f"- place: {where}"])
        recap = fold_quotes(recap, [f"# State\n{state}"], count_tokens=count_tokens)
    assert recap == "# State\n- place: the mill"


def test_two_long_names_are_groups_of_their_own() -> None:
    states = [f"# State\nThe {name}:\n- mood: calm" for name in ("keeper of the lighthouse", "captain of the ferry")]
    recap = fold_quotes(states[0], states[1:], count_tokens=count_tokens)
    assert recap == "# State\n- The keeper of the lighthouse, mood: calm\n- The captain of the ferry, mood: calm"


@given(recaps=st.lists(st.tuples(LINES, LINES, LINES), max_size=8))
def test_an_extractive_running_recap_quotes_within_its_limit(
    recaps: list[tuple[list[str], list[str], list[str]]],
) -> None:
    texts = [render_recap(SceneText(None, *("\n".join(part) for part in parts))) for parts in recaps]
    told = fold_quotes("", texts, count_tokens=count_tokens)
    for found, given_parts in zip(split_parts(told), zip(*recaps, strict=True), strict=False):
        assert set(found) <= {line for part in given_parts for line in part}
    parts = split_parts(told)
    assert count_tokens(told) <= RECAP_TOKENS or all(len(part) <= 1 for part in parts)
    if recaps and recaps[-1][0]:
        assert parts[0][-1] == recaps[-1][0][-1]


@given(st.text(max_size=200))
def test_a_title_is_short_and_on_one_line(quote: str) -> None:
    title = shorten_title(quote)
    assert len(title) <= MAX_TITLE_CHARS
    assert len(title.splitlines()) <= 1


@given(st.text(max_size=200))
def test_shortening_a_title_again_changes_nothing(quote: str) -> None:
    assert shorten_title(shorten_title(quote)) == shorten_title(quote)
