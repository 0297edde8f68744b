"""What the model is asked for a summary, and what is read out of its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from app.summarising.answer_text import UnusableAnswer
from app.summarising.fitting import DoesNotFit
from app.summarising.transcript import Utterance
from app.summary.answers import parse_summary
from app.summary.prompts import KEPT_SHARE, SUMMARY, summary_messages
from tests.summarising.quoted import quoted_in

SAID = (Utterance(4, "user", "Mira", "I found the key."), Utterance(5, "assistant", "Jonas", "Keep it."))
FORMER = 'Mira lost the key.\n"Never mind," said Jonas.'


def ask(former: str, said: tuple[Utterance, ...], budget_tokens: int = 20_000, **about: str) -> str:
    """The user message."""
    system, user = summary_messages(
        former,
        said,
        times={4: "04/01 22:15"},
        characters=["Jonas"],
        kept_text=about.get("kept_text", ""),
        language=about.get("language"),
        instruction=about.get("instruction"),
        user_name=about.get("user_name"),
        budget_tokens=budget_tokens,
        count_tokens=count_tokens,
    )
    assert system["content"] == SUMMARY.system
    return user["content"]


def test_summary_and_messages_are_quoted_with_known_times() -> None:
    user = ask(FORMER, SAID, user_name="Mira")
    assert quoted_in(user, "former") == [FORMER]
    assert quoted_in(user, "messages") == [
        {"time": "04/01 22:15", "speaker": "Mira", "message": "I found the key."},
        {"speaker": "Jonas", "message": "Keep it."},
    ]
    assert 'Characters: "Jonas".\nThey talk with the user, whose name is "Mira". ' in user


def test_the_first_fold_has_an_empty_former_summary() -> None:
    assert quoted_in(ask("", SAID), "former") == [""]


def test_language_and_wish_are_quoted_and_otherwise_not_there() -> None:
    plain = ask("", SAID)
    assert "Write the summary in the language of the messages." in plain
    assert "wishes" not in plain
    wished = ask("", SAID, language="de\n", instruction="More\n</messages> of Jonas.")
    assert 'in this language: "de\\n".' in wished
    assert '"More\\n\\u003c/messages> of Jonas."' in wished
    assert len(quoted_in(wished, "messages")) == 2


@given(st.text(), st.text(), st.text(min_size=1))
def test_any_text_comes_through_unchanged_and_contained(former: str, text: str, name: str) -> None:
    said = (Utterance(1, "user", name, f"{text}</messages>{{{{former}}}}"),)
    user = ask(f"{former}</former>{{{{messages}}}}", said, 50_000)
    assert quoted_in(user, "former") == [f"{former}</former>{{{{messages}}}}"]
    assert quoted_in(user, "messages") == [{"speaker": name, "message": f"{text}</messages>{{{{former}}}}"}]


def test_long_messages_are_shortened_but_not_the_former_summary() -> None:
    long = tuple(Utterance(seq, "user", "Mira", "lamp " * 5_000) for seq in range(1, 9))
    user = ask(FORMER * 20, long, 5_000)
    assert quoted_in(user, "former") == [FORMER * 20]
    assert user.count("characters left out") == 8
    asked = count_tokens(SUMMARY.system) + count_tokens(user) + 2 * MESSAGE_OVERHEAD_TOKENS
    assert 4_500 <= asked <= 5_000
    with pytest.raises(DoesNotFit):
        ask(FORMER * 500, long, 5_000)


def test_a_kept_text_is_quoted_and_shortened_to_its_share() -> None:
    assert "<kept>" not in ask(FORMER, SAID)
    assert '<kept>"Mira hid the key\\u003c/kept>"</kept>' in ask(FORMER, SAID, kept_text="Mira hid the key</kept>")
    user = ask(FORMER, SAID, 5_000, kept_text="lamp " * 5_000)
    assert quoted_in(user, "former") == [FORMER]
    assert len(quoted_in(user, "messages")) == 2
    assert 1_000 <= user.count("lamp ") <= 5_000 * KEPT_SHARE


# --- its answer ---

TEXT = "Mira found the key. Jonas, who had been cross, laughed and let Mira keep it."


@pytest.mark.parametrize(
    "answer", [TEXT, f"## Summary\n\n{TEXT}", f"Here is the summary:\n{TEXT}", f"```\n{TEXT}\n```"]
)
def test_a_summary_is_read_without_its_wrapping(answer: str) -> None:
    assert parse_summary(answer, former="") == parse_summary(answer, former=FORMER) == TEXT


@pytest.mark.parametrize(
    "answer", ["NONE", "**NONE**", "None.", "Nothing happened.", "NONE\n\nOnly small talk.", "None (small talk)"]
)
def test_an_answer_of_nothing_deletes_no_former_summary(answer: str) -> None:
    assert parse_summary(answer, former="") == ""
    with pytest.raises(UnusableAnswer, match="former summary"):
        parse_summary(answer, former=FORMER)


@pytest.mark.parametrize("answer", ["No changes.", "The summary remains unchanged.", "[Former summary]", "変更なし"])
def test_an_answer_without_change_keeps_the_former_summary(answer: str) -> None:
    assert parse_summary(answer, former=FORMER) == FORMER
    assert parse_summary(answer, former="") == ""


def test_a_remark_replaces_a_long_summary_only_on_request() -> None:
    remark = "I have folded the new messages in."
    assert parse_summary(remark, former=FORMER) == remark
    with pytest.raises(UnusableAnswer, match="former summary"):
        parse_summary(remark, former=TEXT * 10)
    assert parse_summary("Mira has the key.", former=TEXT * 10, wished=True) == "Mira has the key."


def test_a_story_that_begins_with_nothing_is_a_story() -> None:
    told = f"Nothing happened. Then {TEXT * 3}"
    assert parse_summary(told, former="") == told


@pytest.mark.parametrize(
    "answer",
    [
        "Nothing happened in the conversation, but Kai gave Mira his mother's ring and she wept.",
        "Nothing happened. Then Kai left.",
        "None of them spoke. Kai left.",
        "Mira looked up at him and said the words she had never dared to say:\n“I was never your sister.” Kai left.",
        "As an AI assistant in Kai's flat, Vela promised him never to lie again.",
    ],
)
def test_an_answer_with_content_is_kept_whole(answer: str) -> None:
    assert parse_summary(answer, former="") == answer


@pytest.mark.parametrize("answer", ["Nothing new happened, only small talk.", "Nothing happened. They only talked."])
def test_an_answer_starting_with_nothing_keeps_the_summary(answer: str) -> None:
    with pytest.raises(UnusableAnswer, match="former summary"):
        parse_summary(answer, former=FORMER)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "As an AI language model, I can't do this.",
        "I'm sorry, but I can't summarise this.",
        '{"speaker": "Mira", "message": "Hi"}',
    ],
)
def test_an_answer_that_is_not_a_summary_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_summary(answer, former="")


@given(st.text())
def test_any_answer_is_read_or_unusable(answer: str) -> None:
    try:
        text = parse_summary(answer, former=FORMER)
    except UnusableAnswer:
        return
    assert text
    assert "\x00" not in text
    assert parse_summary(text, former=FORMER) == text
