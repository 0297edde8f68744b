"""A word that was typed without its accents, or with them, finds the other form in searches and in recall."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.passages.keys import list_keys, list_wanted
from app.passages.words import fold, list_patterns, split_words
from app.search.ranking import Candidate, rank
from app.search.snippets import make_snippet
from app.search.statements import _write_folded
from app.search.stems import stemmer_of
from tests.background import settle
from tests.memories.asking import write
from tests.search.finding import begin_long, find, message
from tests.search.test_search_api import found, search
from tests.talk import append, put

TEXTS = {
    "en": {
        "José met me at the harbor.": "Jose",
        "Zoë painted the gate.": "Zoe",
        "The café was closed.": "cafe",
        "Chloé is naïve, said Søren.": "naive",
        "Søren sailed home.": "Soren",
        "Her résumé was short.": "resume",
        "Björn knows the way.": "Bjorn",
    },
    "fr": {
        "Chloé marchait vers la forêt.": "foret",
        "La rivière était gelée.": "riviere",
        "Sa sœur dormait.": "soeur",
        "Il aimait les poupées.": "poupee",
        "Une clé rouillée.": "cle",
        "Voici l'École des mousses.": "ecole",
    },
    "es": {
        "María llegó tarde.": "Maria",
        "Cantaba una canción.": "cancion",
        "El niño corría.": "nino",
        "Tomás vive en León.": "Tomas",
        "Los árboles ardían.": "arbol",
        "Hasta mañana, dijo ella.": "manana",
    },
    "de": {
        "Jürgen kam zu spät.": "Jurgen",
        "Die Tür war offen.": "Tur",
        "Ein schöner Abend.": "schon",
        "Das Café am Platz.": "Cafe",
        "Käthe lachte.": "Kathe",
    },
}
CASES = [(language, said) for language, said in TEXTS.items() for said in [said]]
FILLER = ["Ok.", "Ja."]


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("language", [None, *TEXTS])
async def test_words_without_their_accents_are_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, language: str | None, is_indexed: bool
) -> None:
    said = TEXTS[language or "en"]
    await put(api, language=language, settings={"memos": {"enabled": False}})
    texts = [*said, *["…"] * 64]
    await append(api, [message(n, text) for n, text in enumerate(texts, start=1)])
    if is_indexed:
        await settle(dispatcher, clock)
    missing = {word for n, word in enumerate(said.values(), start=1) if f"message:m{n}" not in await found(api, word)}
    assert not missing


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_words_with_accents_find_those_without(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, is_indexed: bool
) -> None:
    await put(api, settings={"memos": {"enabled": False}})
    texts = ["Jose met Zoe.", "The cafe was closed.", *["Yes."] * 64]
    await append(api, [message(n, text) for n, text in enumerate(texts, start=1)])
    if is_indexed:
        await settle(dispatcher, clock)
    assert await found(api, "José") == ["message:m1"]
    assert await found(api, "Where is Zoë?") == ["message:m1"]
    (hit,) = (await search(api, "café"))["hits"]
    assert (hit["id"], hit["snippet"]) == ("m2", "The **cafe** was closed.")


async def test_many_words_without_accents_hide_none_with_them(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, language="fr", settings={"memos": {"enabled": False}})
    others = [message(n, "Oui." if n % 2 else f"Le livre est sur la table {n}.") for n in range(2, 802)]
    await append(api, [message(1, "Je suis sûr de toi."), *others])
    await settle(dispatcher, clock)
    assert (await found(api, "sûr"))[0] == "message:m1"
    assert (await found(api, "sur"))[0] != "message:m1"


async def test_memories_are_recalled_without_their_accents(api: httpx.AsyncClient) -> None:
    await begin_long(api, "Nothing happens.")
    await write(api, "Zoë is afraid of storms.")
    await write(api, "Kai sold the cafe.")
    assert "Zoë is afraid of storms." in await find(api, "Zoe")
    assert "Kai sold the cafe." in await find(api, "café")


@pytest.mark.parametrize(("language", "said"), CASES)
def test_keys_of_the_index_have_no_accents(language: str, said: dict[str, str]) -> None:
    for text, word in said.items():
        assert set(list_keys(text, language)) & set(list_wanted([word.lower()])), word
        assert set(list_keys(word, language)) & set(list_wanted(split_words(text))), text


def test_a_word_with_accents_is_a_key_as_it_is_too() -> None:
    assert list_keys("Rivière.", "fr") == ["riviere", "^rivi", "r~ere", "rivière"]
    assert list_keys("Sur, sûr, sûr.", "fr") == ["sur", "sûr"]
    assert list_keys("猫が。", "ja") == ["猫", "猫が"]


async def test_letters_that_have_no_accents_are_folded_in_sql(database: Database) -> None:
    said = ["Ælfric", "Œuvre", "ŒUVRE", "Øre", "Łódź", "Đức", "Straße"]
    folded = _write_folded('text COLLATE "C"')
    query = f"SELECT text, {folded} AS folded FROM unnest($1::text[]) AS said (text)"
    async with database.raw() as connection:
        rows = await connection.fetch(query, said)
    missing = [one["text"] for one in rows if list_patterns([fold(one["text"])])[0] not in one["folded"]]
    assert (len(rows), missing) == (len(said), [])


def test_the_same_accents_count_more() -> None:
    texts = ["Das ist schon.", "Das ist schön.", "Das ist egal."]
    for term, best in (("schön", "1"), ("schon", "0")):
        ranked = rank([term], [Candidate(str(n), text) for n, text in enumerate(texts)], total=3)
        assert [one.source for one in ranked] == [best, "10"[int(best)]]


def test_a_frequent_word_is_no_form_of_an_accented_one() -> None:
    candidates = [Candidate("a", "The tea is here."), Candidate("b", "Du thé noir.")]
    assert [one.source for one in rank(["thé"], candidates, total=2)] == ["b"]


@pytest.mark.parametrize(("language", "said"), CASES)
def test_snippets_mark_the_other_form(language: str, said: dict[str, str]) -> None:
    for text, word in said.items():
        assert "**" in make_snippet(text, [word.lower()], stemmer_of(language)), word
