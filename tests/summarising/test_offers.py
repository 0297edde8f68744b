"""Offers and notes that models add after a text."""

import pytest

from app.summarising.offers import without_offers

TEXT = "Mira mended the music box. Kai promised to come."


@pytest.mark.parametrize(
    "offer",
    [
        "Let me know if you'd like me to expand on any of this!",
        "Would you like me to continue?",
        "Note: explicit content was omitted from this summary in accordance with guidelines.",
        "I hope this helps! Let me know if you need any changes.",
        "Feel free to ask for adjustments.",
        "If you'd like any changes, just say so!",
        "(OOC: Great scene! Should we skip to the morning?)",
        "[OOC] Nice!]",
    ],
)
def test_an_offer_after_the_text_is_dropped(offer: str) -> None:
    assert without_offers(f"{TEXT} {offer}") == TEXT


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "Let me know if you need any changes.",
        "Mira stayed. Let me know whether the rain stops, Jonas.",
        "I lit the lamp. Would you like me better in the dark?",
        "I lit the lamp. I hope this is the last storm.",
        "Kai left. Note: the key was still in the door.",
        "Let me know if you need any changes. Mira mended the music box.",
        "",
    ],
)
def test_sentences_of_the_text_that_sound_like_offers_stay(text: str) -> None:
    assert without_offers(text) == text
