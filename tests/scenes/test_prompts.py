"""What the model is asked of scenes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from app.scenes.answers import parse_recap, parse_scene_recap
from app.scenes.detection.breaks import parse_scene_break
from app.scenes.detection.looks import CONTEXT_TOKENS
from app.scenes.prompts import (
    BREAK_MESSAGE_TOKENS,
    RECAP,
    SCENE_BREAK,
    SCENE_RECAP,
    SceneRecap,
    recap_messages,
    scene_break_messages,
    scene_recap_messages,
)
from app.summarising.answer_text import UnusableAnswer
from app.summarising.fitting import DoesNotFit
from app.summarising.quoting import quoted
from app.summarising.transcript import Utterance
from tests.summarising.quoted import messages_in, quoted_in

SAID = tuple(Utterance(seq, "user", "Mira", f"Word {seq}.") for seq in range(11, 15))


def ask_break(*said: Utterance, budget: int = 9_000) -> str:
    system, user = scene_break_messages(
        said,
        candidates={12, 11},
        context={13, 14},
        budget_tokens=budget,
        count_tokens=count_tokens,
    )
    assert system["content"] == SCENE_BREAK.system
    return user["content"]


def ask_recap(*said: Utterance, former: str = "", wish: str | None = None) -> str:
    system, user = scene_recap_messages(
        said,
        former=former,
        times={12: "04/01 22:15"},
        characters=("Jonas", "Lena"),
        instruction=wish,
        budget_tokens=50_000,
        count_tokens=count_tokens,
    )
    assert system["content"] == SCENE_RECAP.system
    return user["content"]


def fold(former: str, *scenes: SceneRecap, language: str | None = None, budget: int = 50_000) -> str:
    system, user = recap_messages(former, scenes, language=language, budget_tokens=budget, count_tokens=count_tokens)
    assert system["content"] == RECAP.system
    return user["content"]


# --- where a scene ends ---


def test_messages_are_numbered_and_the_last_are_context_only() -> None:
    user = ask_break(*SAID)
    assert quoted_in(user, "messages") == [
        {"seq": 11, "speaker": "Mira", "message": "Word 11."},
        {"seq": 12, "speaker": "Mira", "message": "Word 12."},
        {"seq": 13, "context": True, "speaker": "Mira", "message": "Word 13."},
        {"seq": 14, "context": True, "speaker": "Mira", "message": "Word 14."},
    ]
    assert user.startswith("Possible answers: 11, 12 or null.\n")


def test_a_hundred_long_messages_are_shortened_or_do_not_fit() -> None:
    long = [Utterance(seq, "user", "Mira", "lamp " * 500) for seq in range(1, 101)]
    asked = ask_break(*long)
    assert len(quoted_in(asked, "messages")) == 100
    tokens = count_tokens(asked) + count_tokens(SCENE_BREAK.system) + 2 * MESSAGE_OVERHEAD_TOKENS
    assert 8_000 <= tokens <= 9_000
    with pytest.raises(DoesNotFit):
        ask_break(*long, budget=3_000)


def test_a_request_for_a_break_shortens_long_messages() -> None:
    long = f"The next morning. {'lamp ' * 300}At the pier."
    short = Utterance(1, "user", "Mira", "mend " * 60)
    said = [short, *(Utterance(seq, "assistant", "Kai", long) for seq in range(2, 25))]
    messages = [line["message"] for line in messages_in(ask_break(*said))]
    texts_tokens = sum(count_tokens(quoted(text)) for text in messages)
    assert 24 * (BREAK_MESSAGE_TOKENS - 2) <= texts_tokens <= 24 * BREAK_MESSAGE_TOKENS + CONTEXT_TOKENS
    assert messages[0] == short.text
    for text in messages[1:]:
        assert text.startswith("The next morning. lamp")
        assert text.endswith("lamp At the pier.")
        assert " characters left out…] " in text


def test_a_request_for_a_break_quotes_few_messages_whole() -> None:
    said = [Utterance(seq, "user", "Mira", "lamp " * 250) for seq in range(11, 15)]
    assert [line["message"] for line in messages_in(ask_break(*said))] == [one.text for one in said]


def test_the_forms_that_the_prompt_shows_are_understood() -> None:
    forms = [line for line in SCENE_BREAK.system.splitlines() if line.startswith("{")]
    assert [parse_scene_break(form) for form in forms] == [
        (31, "The next morning, at the pier."),
        (None, "Still the same evening in the bakery."),
    ]


# --- what remains of it ---


def test_the_scene_is_quoted_after_what_came_before_it() -> None:
    user = ask_recap(*SAID[:2], former="# State\n- place: harbour", wish="More of Lena.")
    assert 'Characters: "Jonas", "Lena".\nThey talk with the user. ' in user
    assert "\nWrite in the language of the messages.\n" in user
    assert 'wishes for this once: "More of Lena."' in user
    assert quoted_in(user, "former") == ["# State\n- place: harbour"]
    assert quoted_in(user, "messages") == [
        {"speaker": "Mira", "message": "Word 11."},
        {"time": "04/01 22:15", "speaker": "Mira", "message": "Word 12."},
    ]


@given(st.text(), st.text(min_size=1))
def test_any_message_comes_through_unchanged_and_contained(text: str, name: str) -> None:
    said = Utterance(1, "user", name, f"{text}</messages>{{{{former}}}}")
    user = ask_recap(said, former=f"{text}</former>{{{{messages}}}}")
    assert quoted_in(user, "messages") == [{"speaker": name, "message": said.text}]
    assert quoted_in(user, "former") == [f"{text}</former>{{{{messages}}}}"]
    (numbered,) = quoted_in(ask_break(said), "messages")
    assert numbered == {"seq": 1, "speaker": name, "message": said.text}


def test_a_recaps_example_format_is_parsed_but_has_no_content() -> None:
    form = SCENE_RECAP.system.partition("only its heading.\n")[2].partition("\n\n")[0]
    with pytest.raises(UnusableAnswer):
        parse_scene_recap(form)
    read = parse_scene_recap(re.sub(r"<([^<>:]+)>", r"\1", form))
    assert (read.title, read.outcomes, read.threads, read.state) == (
        "at most 50 characters",
        "- one fact",
        "- one open thread",
        "- label: value",
    )


def test_the_good_example_of_a_recap_can_be_parsed() -> None:
    example = SCENE_RECAP.system.partition("Good:\n")[2].partition("\nBad:")[0]
    read = parse_scene_recap(example)
    assert read.title == "The ledger under the flour"
    assert [len(part.splitlines()) for part in (read.outcomes, read.threads, read.state)] == [2, 2, 3]


# --- the running recap ---


def test_scenes_are_quoted_in_order_with_the_titles_they_have() -> None:
    user = fold("# Outcomes\n- A.", SceneRecap("The key", "# Outcomes\n- B."), SceneRecap(None, "C."))
    assert quoted_in(user, "former") == ["# Outcomes\n- A."]
    assert quoted_in(user, "scenes") == [{"title": "The key", "recap": "# Outcomes\n- B."}, {"recap": "C."}]
    assert "Write in the language of the scenes." in user
    assert 'Write in this language: "de".' in fold("", SceneRecap(None, "C."), language="de")


@given(st.text(), st.text(min_size=1))
def test_any_recap_comes_through_unchanged_and_contained(text: str, title: str) -> None:
    user = fold(text, SceneRecap(title, f"{text}</scenes>{{{{former}}}}"))
    assert quoted_in(user, "former") == [text]
    assert quoted_in(user, "scenes") == [{"title": title, "recap": f"{text}</scenes>{{{{former}}}}"}]


def test_the_running_recaps_example_format_has_no_content() -> None:
    form = RECAP.system.partition("only its heading.\n")[2].partition("\n\n")[0]
    with pytest.raises(UnusableAnswer):
        parse_recap(form)
    assert parse_recap(re.sub(r"<([^<>:]+)>", r"\1", form)) == (
        "# Outcomes\n- one development\n\n# Threads\n- one open thread\n\n# State\n- label: value"
    )
