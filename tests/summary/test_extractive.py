"""The extractive summary keeps text that a model or a person wrote."""

from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import count_tokens
from app.summarising.extractive import extract, is_quote
from app.summarising.transcript import Utterance
from app.summary.extractive import SUMMARY_TOKENS, fold_quotes
from tests.read_counts import CountedList

PARAGRAPH = " ".join(
    f"On day {n} Mira told Kai what she had hidden in the lighthouse for {n} years." for n in range(40)
)


def promises(first: int, last: int) -> list[Utterance]:
    said = "I promise you the lamp of Rook {}, Mira, before the {} of May."
    return [Utterance(n, "user", "Kai", said.format(n, n)) for n in range(first, last + 1)]


def fold(former: str, first: int, last: int) -> str:
    return fold_quotes(former, promises(first, last), count_tokens=count_tokens)


def test_a_paragraph_without_room_stays_beside_the_newest_quote() -> None:
    assert count_tokens(PARAGRAPH) > SUMMARY_TOKENS
    text = PARAGRAPH
    for first in (1, 41, 81):
        text = fold(text, first, first + 39)
    paragraph, quote = text.splitlines()
    assert paragraph == PARAGRAPH
    assert is_quote(quote)


def test_quotes_are_dropped_before_written_lines() -> None:
    written = ["They met at the pier.", "", "Kai: a smith."]
    text = "\n".join(written)
    for first in range(1, 400, 40):
        text = fold(text, first, first + 39)
    assert text.splitlines()[: len(written)] == written
    assert count_tokens(text) <= SUMMARY_TOKENS


def test_without_quotes_the_first_and_newest_lines_are_kept() -> None:
    written = [f"On day {n} Mira hid something from Kai in the old lighthouse." for n in range(60)]
    lines = fold("\n".join(written), 1, 8).splitlines()
    assert lines[0] == written[0]
    assert len(lines) > 10
    assert is_quote(lines[-1])
    assert count_tokens("\n".join(lines)) <= SUMMARY_TOKENS


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=60))
def test_every_quoted_line_has_the_form_of_a_quote(text: str, name: str) -> None:
    batch = [Utterance(1, "user", name, text)]
    assert all(is_quote(line) for line in extract(batch, batch, budget_tokens=60, count_tokens=count_tokens))


def test_the_words_of_the_messages_are_counted_once() -> None:
    text = "I promised my brother Jonas that I would bring the brass key {0} back to pier {0}."
    messages = CountedList([Utterance(n, "user", "Mira", text.format(n)) for n in range(1, 401)])
    assert fold_quotes("", messages, count_tokens=count_tokens)
    assert messages.reads <= 3 * len(messages)
