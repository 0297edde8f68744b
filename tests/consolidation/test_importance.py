import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.importance import find_category, rate_sentence
from app.summarising.extractive import Frequencies
from app.summarising.sentences import Kind, find_terms, is_number, split_sentences
from app.summarising.transcript import Utterance

SAID = "I adopted a dog in Lisbon."
KINDS = st.sampled_from(list(Kind))


def rate(text: str, history: str = "") -> float:
    """The importance of the most important sentence; `history` shows which words are names."""
    is_name = Frequencies.of([Utterance(1, "user", "Mia", history), Utterance(2, "user", "Mia", text)]).is_name
    ratings = []
    for sentence in split_sentences(text):
        said = "".join(sentence.clauses)
        names = sum(is_number(term) or is_name(term) for term in find_terms(said))
        ratings.append(rate_sentence(said, sentence.kind, names))
    return max(ratings, default=0.0)


@pytest.mark.parametrize(
    ("higher", "lower"),
    [
        ("We drove to Lisbon and then to Porto.", "We drove to the sea and then to town."),
        ("We have 3 cats and 2 dogs.", "We have cats and dogs."),
        ("I work as a nurse.", "She works as a nurse."),
        ("I love thunderstorms.", "There are thunderstorms."),
        ("I promise to come back.", "I guess we come back."),
        ("My sister lives by the sea.", "The crowd lives by the sea."),
        ("Last week the roof fell in.", "Then the roof fell in."),
        ("I work as a nurse.", "Do I work as a nurse?"),
        ("I work as a nurse.", "You say I work as a nurse."),
        ("I met her brother.", "It met her brother."),
        ("I have clocks.", "Give me clocks."),
        ("My sister loves clocks.", "My sister loves that one."),
        ("The shop is my home.", "It is my home."),
        ("Ich heiße Lena und wohne in Berlin.", "Na ja, so ist das eben."),
        ("Me llamo Ana y vivo en Sevilla.", "Bueno, así es la vida."),
        ("Je m'appelle Luc et je travaille ici.", "Bon, c'est comme ça."),
        ("私は看護師として働いています。", "そうですね。"),
        ("我叫小明，住在上海。", "是这样的。"),
        ("我答应你一定回来。", "今天天气很好。"),
    ],
)
def test_important_sentences_are_rated_higher(higher: str, lower: str) -> None:
    seen = "It was in Lisbon, then in Porto, near Sevilla."
    assert rate(higher, seen) > rate(lower, seen)


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Good night, sleep well.",
        "Thanks, you are so kind!",
        "How are you?",
        "Haha yes.",
        "おはよう！",
        "你好！",
    ],
)
def test_small_talk_is_not_important(text: str) -> None:
    assert rate(text) <= 0.5


def test_a_pronoun_lowers_a_rating_only_without_a_name() -> None:
    assert rate_sentence("It is a shop.", Kind.STATEMENT, 1) == rate_sentence("There is a shop.", Kind.STATEMENT, 1)
    assert rate_sentence("It is a shop.", Kind.STATEMENT, 0) < rate_sentence("There is a shop.", Kind.STATEMENT, 0)


def test_a_statement_followed_by_a_question_is_rated_lower() -> None:
    assert rate_sentence("I quit my job. And you?", Kind.STATEMENT, 0) < rate_sentence("I quit.", Kind.STATEMENT, 0)


def test_an_action_is_less_important_than_what_is_said() -> None:
    assert rate("*I work as a nurse.*") < rate("I work as a nurse.")
    assert rate("*waves* I work as a nurse.") == rate("I work as a nurse.")


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("I want to open a bakery.", "goal"),
        ("My favourite colour is green.", "preference"),
        ("My sister got a dog.", "relationship"),
        ("I moved to Porto.", "personal"),
        ("We build the API with FastAPI.", "technical"),
        ("Ich liebe Gewitter.", "preference"),
        ("The rain stopped.", None),
    ],
)
def test_a_sentence_has_the_category_of_its_words(said: str, category: str | None) -> None:
    assert find_category(said) == category


@given(st.text(max_size=300), KINDS, st.integers(0, 30))
def test_a_rating_is_between_0_and_1(said: str, kind: Kind, names: int) -> None:
    assert 0 <= rate_sentence(said, kind, names) <= 1
    assert 0 <= rate(said) <= 1


@given(KINDS, st.integers(0, 5), st.integers(0, 5))
def test_names_never_lower_a_rating(kind: Kind, names: int, more: int) -> None:
    assert rate_sentence(SAID, kind, names) <= rate_sentence(SAID, kind, names + more)
