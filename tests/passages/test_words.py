"""The words of texts and queries, in every script."""

import unicodedata
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.passages.words import (
    HALVED_CHARS,
    MAX_SHORT_TERMS,
    MAX_TERMS,
    drop_accents,
    find_search_terms,
    find_short_terms,
    find_terms,
    find_terms_of_messages,
    is_topical,
    list_patterns,
    list_words,
    split_words,
)
from tests.slowness import SLOWNESS

LETTERS = "abcxyzéÉß日本語猫のですカ한국어ไทย0 .,'-"
texts = st.text(st.sampled_from(LETTERS), max_size=40)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The brass KEY, again!", ["the", "brass", "key", "again"]),
        ("Ｔｏｋｙｏ Élan", ["tokyo", "élan"]),
        ("日本語の猫", ["日", "日本", "本", "本語", "語", "語の", "の猫", "猫"]),
        ("猫。東京に", ["猫", "東", "東京", "京", "京に"]),
        ("北京市", ["北", "北京", "京", "京市", "市"]),
        ("고양이가 왔다", ["고양", "양이", "이가", "왔다"]),
        ("lamp42 灯台 end", ["lamp42", "灯", "灯台", "台", "end"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("…!?", []),
    ],
)
def test_a_text_is_split_into_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(texts)
def test_words_do_not_depend_on_case_or_form(text: str) -> None:
    assert split_words(text) == split_words(text.upper().lower()) or "ß" in text
    assert split_words(unicodedata.normalize("NFD", text)) == split_words(text)


@given(st.text(st.sampled_from("日本語猫東京住"), min_size=2, max_size=12))
def test_each_pair_of_spaceless_characters_is_a_word(text: str) -> None:
    slow = [word for a, b in pairwise(text) for word in (a, a + b)] + [text[-1]]
    assert split_words(text) == slow
    assert find_terms(text) == list(dict.fromkeys(a + b for a, b in pairwise(text)))


@given(texts)
def test_terms_are_topical_words_each_once(text: str) -> None:
    terms = find_terms(text)
    assert len(terms) == len(set(terms)) <= MAX_TERMS
    assert all(is_topical(term) for term in terms)
    assert set(terms) <= set(split_words(text))


def test_words_without_a_topic_are_no_terms() -> None:
    assert find_terms("What did you say about the lantern?") == ["lantern"]
    assert find_terms("それは猫です") == ["猫", "は猫", "猫で"]
    assert find_terms("猫") == ["猫"]
    assert find_terms("Is it? I do.") == []


def test_hiragana_counts_in_names_and_in_searches() -> None:
    assert find_terms("さくらはねこが好き", names=["さくら", "Mira"]) == ["好", "さく", "くら", "が好", "好き"]
    assert find_terms("行くかな、図書館", names=["かな"]) == ["行", "行く", "図書", "書館"]
    assert find_search_terms("ねこ") == ["ねこ"]
    assert find_search_terms("りんご AI") == ["ai", "りん", "んご"]
    assert find_search_terms("うみ 好き") == ["好", "好き", "うみ"]
    assert find_search_terms("ねこと公園") == ["と公", "公園"]
    assert find_terms("そうだね") == []
    assert find_search_terms("あ…?") == []


@pytest.mark.parametrize("said", ["公園でさくらに会った", "僕はさくらが好き", "昨日のさくら", "ねえさくら"])
def test_a_long_name_in_hiragana_counts_anywhere(said: str) -> None:
    assert {"さく", "くら"} <= set(find_terms(said, names=["さくら", "まい"]))
    assert not {"さく", "くら"} & set(find_terms(said))
    assert "まい" not in find_terms("知らないがうまい", names=["さくら", "まい"])


def test_a_long_run_of_hiragana_is_no_term_beside_others() -> None:
    assert find_search_terms("Mira はどこにいるの？") == ["mira"]
    assert find_search_terms("AI はどこにいるの？") == ["ai"]
    assert find_search_terms("ねこ、どこにいるの？") == ["ねこ"]
    assert find_search_terms("ひまわり畑 ひまわり") == ["畑", "り畑", "ひま", "まわ", "わり"]
    assert find_search_terms("どこにいるの") == ["どこ", "こに", "にい", "いる", "るの"]
    assert find_search_terms("さくらはどこにいるの", names=["さくら"]) == ["さく", "くら"]


def test_a_query_has_few_terms_with_hiragana() -> None:
    words = [f"lantern{n:03}" for n in range(MAX_TERMS - 1)]
    numbers = [str(n) for n in range(10, 40)]
    query = " ".join([*words, *numbers, "ひまわり", "つばめ"])
    assert find_search_terms(query) == [*words, *numbers[:MAX_SHORT_TERMS], "ひま"]
    runs = "、".join(chr(0x3042 + n) + chr(0x3043 + n) for n in range(40))
    assert len(find_search_terms(f"lantern {' '.join(numbers)} {runs}")) == MAX_TERMS + MAX_SHORT_TERMS


def test_a_name_in_hiragana_counts_as_one_term() -> None:
    found = find_terms_of_messages(["さくら、どう？", "公園の噴水"], names=["さくら"])
    assert found == ["さく", "くら", "公園", "園の", "の噴", "噴水"]


def test_of_a_long_query_the_longest_words_count() -> None:
    words = [f"w{'x' * n}" for n in range(2, MAX_TERMS + 12)]
    assert find_terms(" ".join(words)) == words[-MAX_TERMS:]


@pytest.mark.parametrize(
    ("query", "short"),
    [
        ("Who is Bo?", ["bo"]),
        ("Jo has 42 ducks, and Al 7.", ["jo", "42", "al", "7"]),
        ("An AI is on the TV.", ["ai", "tv"]),
        ("bo", ["bo"]),
        ("bo sails", []),
        ("It is so. No, I do. Oh, My! Mr. D'Arc", []),
        ("日本", []),
    ],
)
def test_short_names_and_numbers_are_terms(query: str, short: list[str]) -> None:
    assert find_short_terms(query) == short
    assert [term for term in find_search_terms(query) if len(term) <= 2 and term.isascii()] == short


def test_a_query_has_few_short_terms() -> None:
    numbers = [str(n) for n in range(10, 40)]
    assert find_search_terms(f"lantern {' '.join(numbers)}") == ["lantern", *numbers[:MAX_SHORT_TERMS]]
    assert find_terms_of_messages(["Bo?", " ".join(numbers)]) == ["bo", *numbers[: MAX_SHORT_TERMS - 1]]
    assert find_terms_of_messages(["Bo and Al?", "Lantern."]) == ["bo", "al"]


def test_a_short_message_is_searched_with_those_before_it() -> None:
    assert find_terms_of_messages(["And then?", "Lantern?", "Lamp oil"]) == ["lantern", "lamp", "oil"]
    assert find_terms_of_messages(["The brass key opens the lamp room.", "Tomas"]) == [
        "brass",
        "key",
        "opens",
        "lamp",
        "room",
    ]
    assert find_terms_of_messages([]) == []


def test_long_messages_without_a_topic_are_read_once() -> None:
    texts = ["ああいうことだよね。" * 40] * 400
    begin = process_time()
    assert find_terms_of_messages(texts) == []
    assert process_time() - begin < 2 * SLOWNESS


def _bare(text: str) -> str:
    """A text as the statements compare it with patterns: decomposed, and without accents."""
    return unicodedata.normalize("NFD", drop_accents(text))


@pytest.mark.parametrize(
    ("word", "bare"),
    [("josé", "jose"), ("søren", "soren"), ("œuvre", "oeuvre"), ("łódź", "lodz"), ("ёлка", "елка"), ("がく", "がく"),
     ("한국", "한국"), ("हिन्दी", "हिन्दी"), ("\u0301", "\u0301"), ("cafe", "cafe")],
)  # fmt: skip
def test_words_are_stripped_of_their_accents(word: str, bare: str) -> None:
    assert drop_accents(word) == bare


@given(texts)
def test_a_text_with_a_term_has_one_of_its_patterns(text: str) -> None:
    lowered = _bare(text).lower()
    patterns = list_patterns(find_terms(text))
    assert not find_terms(text) or any(pattern in lowered for pattern in patterns) or "ß" in text


@pytest.mark.parametrize("text", ["Маяк", "МАЯК", "маяк", "Élan", "élan"])
def test_patterns_find_words_that_no_database_lowered(text: str) -> None:
    ascii_lowered = "".join(letter.lower() if letter.isascii() else letter for letter in _bare(text))
    assert any(pattern in ascii_lowered for pattern in list_patterns([text.lower()])) or text.isupper()


@given(st.text(st.sampled_from("abcde"), min_size=HALVED_CHARS, max_size=14), st.data())
def test_a_typo_leaves_a_pattern_as_it_is(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    written = word[:at] + "z" + word[at + 1 :]
    assert any(pattern in written for pattern in list_patterns([word]))


@given(st.lists(st.text(), max_size=4))
def test_remembered_words_are_those_of_the_text(texts: list[str]) -> None:
    for text in [*texts, *texts]:
        assert list(list_words(text)) == split_words(text)
