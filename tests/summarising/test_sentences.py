import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.summarising.sentences import (
    Kind,
    clean_line,
    count_words,
    ends_sentence,
    find_first_words,
    find_terms,
    is_katakana,
    is_number,
    split_sentences,
)


def sentences(text: str) -> list[str]:
    return ["".join(sentence.clauses) for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We won! Really?! Yes.", ["We won!", "Really?!", "Yes."]),
        ("昨日会った。楽しかった！また行く？", ["昨日会った。", "楽しかった！", "また行く？"]),
        ("मैं घर गया। वह आई।", ["मैं घर गया।", "वह आई।"]),
        ("هل تحب القهوة؟ نعم.", ["هل تحب القهوة؟", "نعم."]),
        ("i moved\nit was hard", ["i moved", "it was hard"]),
        ("no end of it", ["no end of it"]),
    ],
)
def test_a_sentence_ends_at_its_mark_or_line_end_in_any_script(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    ["Dr. Okafor lives in St. Albans.", "It cost 3.50 at www.shop.example.", "I was... well... surprised."],
)
def test_a_full_stop_that_ends_nothing_splits_nothing(text: str) -> None:
    assert sentences(text) == [text]


def test_markdown_around_a_line_is_left_out_and_inside_it_stays() -> None:
    assert sentences("## Plans\n- buy **two** tents\n> she said yes\n1. _pack_") == [
        "Plans",
        "buy **two** tents",
        "she said yes",
        "pack",
    ]


def test_a_short_sentence_joins_the_next_one_of_its_line() -> None:
    said = "Yes. It is behind my breastplate. I promise. Keep it in the tin by the stove. Please!\nGood night."
    assert ["".join(sentence.clauses) for sentence in split_sentences(said, min_words=6)] == [
        "Yes. It is behind my breastplate.",
        "I promise. Keep it in the tin by the stove. Please!",
        "Good night.",
    ]


def test_a_sentence_that_only_partly_asks_is_a_statement() -> None:
    kinds = [
        s.kind for s in split_sentences("I moved to Oslo last year. And you?\nWhat? Who told you that?", min_words=6)
    ]
    assert kinds == [Kind.STATEMENT, Kind.QUESTION]


def test_actions_captions_and_questions_are_not_statements() -> None:
    kinds = {"".join(s.clauses): s.kind for s in split_sentences("*She nods.* I stay. Do you? [a photo of a lake]")}
    assert kinds == {
        "She nods.": Kind.ACTION,
        "I stay.": Kind.STATEMENT,
        "Do you?": Kind.QUESTION,
        "[a photo of a lake]": Kind.NOTE,
    }


def test_an_emphasised_word_is_no_action() -> None:
    assert sentences("I *really* mean it. *You* are it. I love *you*") == [
        "I *really* mean it.",
        "You* are it.",
        "I love *you",
    ]


def test_clauses_end_at_punctuation_or_at_a_maximum_length() -> None:
    (short,) = split_sentences("I came home, fed the cat - twice - and slept.")
    assert short.clauses == ("I came home, ", "fed the cat - ", "twice - ", "and slept.")
    (long,) = split_sentences("word " * 60)
    assert [len(clause) for clause in long.clauses] == [120, 120, 59]
    (joined,) = split_sentences("Oh no. Dr. Lee, help!", min_words=6)
    assert joined.clauses == ("Oh no. ", "Dr. Lee, ", "help!")
    (unspaced,) = split_sentences("あ" * 100)
    assert [len(clause) for clause in unspaced.clauses] == [40, 40, 20]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Well-known, at 7:30 on 1,200 roads", ["Well-known", "at", "7:30", "on", "1,200", "roads"]),
        ("see https://example.com/Path?x=1 and www.example.org", ["see", "and"]),
        ("東京タワーに行った", ["東京", "タワー", "行"]),
        ("我搬到了上海市", ["我搬", "搬到", "到了", "了上", "上海", "海市"]),
        ("Аня купила 2 хлеба", ["Аня", "купила", "2", "хлеба"]),
        ("दिल्ली में", ["दिल्ली", "में"]),
        ("😀 👍🏽 …", []),
    ],
)
def test_terms_are_what_the_script_writes_as_words(text: str, expected: list[str]) -> None:
    assert find_terms(text) == expected


def test_the_first_word_of_a_sentence_quote_or_action_is_marked() -> None:
    assert find_first_words('Once I said: "Never." *Then* Anna left') == ["Once", "Never", "Then"]


def test_numbers_and_katakana_are_recognised() -> None:
    assert is_number("18th")
    assert is_number("٣")
    assert is_number("Thirty-two")
    assert not is_number("once")
    assert is_katakana("タワー")
    assert not is_katakana("東京")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm Nell, the clock-mender", 5),
        ("我搬到了上海", 6),
        ("タワーに行った", 4),
        ("ฉันย้ายไปเชียงใหม่", 5),
        ("Мы живём в Риме", 4),
        ("😀 …", 0),
    ],
)
def test_words_are_counted_at_spaces_and_estimated_without_them(text: str, words: int) -> None:
    assert count_words(text) == words


def test_the_last_mark_decides_if_a_sentence_ends() -> None:
    assert all(map(ends_sentence, ("So it is. ", 'He said: "Go!"', "そうだ。」")))
    assert not any(map(ends_sentence, ("well, ", "I think: ", "")))


def test_a_clean_line_has_no_control_characters() -> None:
    assert clean_line(" a\x00b\r\n\u2028c \u202e d\ud800 ") == "a b c d"


@given(st.text())
def test_clauses_are_ordered_parts_of_the_text_without_newlines(text: str) -> None:
    rest = clean_line(text)
    for sentence in split_sentences(text):
        written = "".join(sentence.clauses)
        assert 0 < len(sentence.clauses) <= 8
        assert len(written.splitlines()) == 1
        rest = rest[rest.index(written) + len(written) :]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_quick_way_for_ascii_finds_the_same_words(text: str) -> None:
    assert find_terms(text) == find_terms(f"{text} é")[:-1]
