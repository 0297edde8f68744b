"""The older part of a diary without a model: quotations, dated, and ever sparser."""

from hypothesis import given
from hypothesis import strategies as st

from app.diary.extractive import fold_quotes
from app.kit.tokens import count_tokens

BIRTHDAY = ("04/01", "He remembered my birthday without being told. I did not expect that from Tomas.")
NOVEL = ("04/02", "Tomas asked about my novel draft. I promised to show Tomas the first chapter on Sunday.")
SMALL = ("04/03", "Good morning. Yes, fine, thank you!")

sentences = st.sampled_from(
    [
        BIRTHDAY[1],
        NOVEL[1],
        SMALL[1],
        "Ilse lied to me about the letter from Port Ellery.",
        "…",
        "雨が降った。ミラが来た。",
    ]
)
entries = st.lists(st.tuples(st.sampled_from(["04/01", "04/02", "12/31"]), sentences), min_size=1, max_size=12)


def test_quotes_of_the_character_have_their_dates() -> None:
    text = fold_quotes("", [BIRTHDAY, NOVEL, SMALL], most_lines=24, count_tokens=count_tokens)
    lines = text.split("\n")
    assert {line.partition(": ")[0] for line in lines} == {"04/01", "04/02"}
    for line in lines:
        assert line.partition("“")[2].rstrip("”….") in BIRTHDAY[1] + NOVEL[1]


def test_earlier_quotes_are_kept_while_there_is_room() -> None:
    former = "03/30: “Ilse lied to me about the letter from Port Ellery.”\nIlse and I made up."
    text = fold_quotes(former, [SMALL], most_lines=24, count_tokens=count_tokens)
    assert text.startswith(former)


def test_without_room_the_most_relevant_quotes_are_kept() -> None:
    former = "\n".join(
        [
            "03/01: “It rained all day again and the soup was fine.”",
            "03/02: “Ilse lied to me about the letter from Port Ellery.”",
            "03/03: “I promised Ilse to come back to Port Ellery in June.”",
            "03/04: “It was a quiet and fine day with soup, really.”",
        ]
    )
    lines = fold_quotes(former, [BIRTHDAY, NOVEL], most_lines=3, count_tokens=count_tokens).split("\n")
    assert len(lines) <= 3
    assert any("promised" in line for line in lines)
    assert not any("soup" in line for line in lines)


def test_a_generated_text_is_quoted_without_an_invented_date() -> None:
    former = "\n".join(["Ilse lied to me about the letter from Port Ellery, and I have not forgiven Ilse."] * 3)
    text = fold_quotes(former, [NOVEL], most_lines=2, count_tokens=count_tokens)
    assert "—" not in text
    assert len(text.split("\n")) <= 2


@given(entries, entries, st.integers(1, 12))
def test_repeated_folds_never_exceed_the_line_limit(
    first: list[tuple[str, str]], second: list[tuple[str, str]], most: int
) -> None:
    former = fold_quotes("", first, most_lines=most, count_tokens=count_tokens)
    text = fold_quotes(former, second, most_lines=most, count_tokens=count_tokens)
    for made in (former, text):
        assert len(made.split("\n")) <= most
        assert "\0" not in made
