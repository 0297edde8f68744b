"""The tokens of the local model, without its files."""

import pytest

from app.embeddings.wordpiece import WordPieces

PIECES = ["[UNK]", "kai", "##s", "key", "na", "##ive", "naive", "'", "s", "猫", "日", "σ", "##σ", ".", "$", "5", "-"]
VOCABULARY = WordPieces({piece: number for number, piece in enumerate(PIECES)})


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Kai's KEYS.", ["kai", "'", "s", "key", "##s", "."]),
        ("naïve", ["naive"]),  # the longest piece, without its accent
        ("nas", ["na", "##s"]),
        ("keyx", ["[UNK]"]),  # a word is known as a whole or not at all
        ("日猫", ["日", "猫"]),
        ("Σ ΣΣ", ["σ", "σ", "##σ"]),
        ("$5-\t5", ["$", "5", "-", "5"]),
        ("k\u200ba\u00adi\u00a0key\x00", ["kai", "key"]),
        ("key" * 40, ["[UNK]"]),
        (" \n", []),
        ("", []),
    ],
)
def test_a_text_is_divided_into_the_longest_known_pieces(text: str, pieces: list[str]) -> None:
    assert [PIECES[number] for number in VOCABULARY.encode(text)] == pieces
