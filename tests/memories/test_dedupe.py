import unicodedata
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.kit.db import Connection
from app.memories.dedupe import Known, compare, similarity

PAIRS = [
    ("Mira has two cats.", "Mira has three cats."),
    ("Mira has two cats.", "mira HAS two  cats!"),
    ("Kai lives in Porto", "Kai's sister lives in Porto near the river"),
    ("Ana vive en Sevilla desde 2019", "Ana vive en Lugo desde 2020"),
    ("a", "a b"),
    ("...", "!"),
    ("", "word"),
    ("foo_bar-baz", "foo bar baz"),
    ("Übung in Łódź", "ÜBUNGEN in ŁÓDŹ"),
    ("Аня живёт в Москве — у реки", "аня живёт в Казани"),
]
HAN, KANA = "小明住在上海医院工作", "ミラはねこがすき"


def slow_similarity(one: str, other: str) -> Fraction:
    """Return the similarity by its definition, one character after the other."""
    first, second = slow_groups(one), slow_groups(other)
    either = [group for group in first if group not in second] + second
    return Fraction(sum(group in second for group in first), len(either)) if either else Fraction(0)


def slow_groups(text: str) -> list[str]:
    words: list[str] = []
    kind = None
    for char in unicodedata.normalize("NFKC", text).lower():
        former, kind = kind, "han" if char in f"{HAN}{KANA}" else "word" if char.isalnum() else None
        if kind and kind == former:
            words[-1] += char
        elif kind:
            words.append(char)
    groups: list[str] = []
    for word in words:
        letters = 2 if word[0] in f"{HAN}{KANA}" else 3
        padded = " " * (letters - 1) + word + " "
        for at in range(len(padded) - letters + 1):
            if padded[at : at + letters] not in groups:
                groups.append(padded[at : at + letters])
    return groups


written = st.text(st.sampled_from(f"abcABC éß12 .,-_{HAN}{KANA}"), max_size=30)


@given(written, written)
def test_the_similarity_equals_the_slow_definition(one: str, other: str) -> None:
    assert similarity(one, other) == pytest.approx(float(slow_similarity(one, other)))


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_the_similarity_is_that_of_postgresql(connection: Connection, one: str, other: str) -> None:
    row = await connection.fetchrow("SELECT similarity($1, $2) AS value", one, other)
    assert row is not None
    assert similarity(one, other) == pytest.approx(row["value"], abs=1e-6)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_similarity_is_symmetric_and_at_most_1(one: str, other: str) -> None:
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, one) in (0, 1)


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        ("小明住在上海。", "小明住在上海市。", "天气很好，我们出去走走吧。"),
        ("ミラは猫が好きです。", "ミラは猫が大好きです。", "明日は雨が降ります。"),
        ("미라는 고양이를 좋아한다", "미라는 고양이를 아주 좋아한다", "내일은 비가 온다"),
        ("मीरा को बिल्ली पसंद है", "मीरा को बिल्लियाँ पसंद हैं", "कल बारिश होगी"),
        ("มิราชอบแมว", "มิราชอบแมวมาก", "พรุ่งนี้ฝนตก"),
        ("ميرا تحب القطط", "ميرا تحب القطط كثيرا", "غدا سوف تمطر"),
    ],
)
def test_any_script_is_compared(one: str, near: str, far: str) -> None:
    assert similarity(one, near) > 0.5 > 0.2 > similarity(one, far)


# --- verdicts ---

FORMER = "Mira lives in Porto with her sister Ilse and two old cats, in a flat above the bakery."
CORRECTED = "Mira lives in Porto with her sister Ilse and two old cats, in a house above the bakery."
KNOWN = [Known(1, "Kai plays the cello."), Known(2, FORMER), Known(3, "Kai plays the piano.")]


def test_a_correction_supersedes_what_it_corrects() -> None:
    verdict = compare(CORRECTED, KNOWN)
    assert (verdict.outcome, verdict.id) == ("supersedes", 2)
    assert 0.85 < verdict.similarity < 1


@pytest.mark.parametrize("again", [FORMER, FORMER.upper(), f"  {FORMER} ".replace(" ", "\n")])
def test_the_same_words_are_a_duplicate(again: str) -> None:
    verdict = compare(again, KNOWN)
    assert (verdict.outcome, verdict.id, verdict.similarity) == ("duplicate", 2, 1.0)


def test_changed_punctuation_is_a_new_version_of_a_statement() -> None:
    assert compare("Kai plays the cello!", KNOWN).outcome == "supersedes"


def test_other_words_are_new() -> None:
    verdict = compare("Mira moved to Lisbon.", KNOWN)
    assert (verdict.outcome, verdict.id, verdict.similarity) == ("new", None, 0.0)
    assert compare("😀", [Known(1, "🎉")]).outcome == "new"


def test_a_similarity_at_the_threshold_is_a_new_memory() -> None:
    near = similarity(CORRECTED, FORMER)
    assert compare(CORRECTED, KNOWN, threshold=near).outcome == "new"
    assert compare(CORRECTED, KNOWN, threshold=near - 1e-9).outcome == "supersedes"


IDA = "My sister Ida was born in Bergen on March 3rd 1990, and she lives there."


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (IDA, IDA.replace("Ida", "Eva").replace("1990", "1992")),
        (FORMER, FORMER.replace("Ilse", "Ada")),
        ("Моя сестра Ида родилась в Бергене и живёт там.", "Моя сестра Ева родилась в Бергене и живёт там."),
    ],
)
def test_another_name_is_another_memory(former: str, now: str) -> None:
    assert compare(now, [Known(1, former)], threshold=0.5).outcome == "new"
    assert compare(former, [Known(1, now)], threshold=0.5).outcome == "new"


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (IDA, IDA.replace("3rd 1990", "5th 1992")),
        (IDA, IDA.replace("March", "May")),
        (IDA, IDA.replace("Ida ", "")),
        (IDA, f"Now I know: {IDA}"),
        (IDA, IDA.replace("My sister Ida", "Ida, my sister,")),
        (IDA, IDA.replace("Ida", "IDA").replace("3rd", "5th")),
        (IDA.upper(), IDA.upper().replace("LIVES", "STAYS")),
        (IDA, IDA.replace("My", "Our")),
        ("Mira lives in Porto", "Mira now lives in Porto."),
        ("She is allergic to nuts.", "Ida is allergic to nuts."),
        ("Sister Ida has a sister in Bergen.", "Brother Ida has a brother and a sister in Bergen."),
        ("小明住在上海的医院附近。", "小红住在上海的医院附近。"),
    ],
)
def test_the_same_names_are_the_same_memory(former: str, now: str) -> None:
    assert compare(now, [Known(1, former)], threshold=0.5).outcome == "supersedes"


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("Sam loves Mira.", "Mira loves Sam."),
        ("Ida appreciates Tom's support.", "Tom appreciates Ida's support."),
        ("The guard told Ida that Tom had lied.", "The guard told Tom that Ida had lied."),
        ("Ида любит Тома.", "Тома любит Ида."),
        ("Ida and Tom are married.", "Tom and Ida are married."),  # these say the same, and are kept twice
    ],
)
def test_the_same_names_in_another_order_are_another_memory(former: str, now: str) -> None:
    assert similarity(former, now) > 0.85
    assert compare(now, [Known(1, former)]).outcome == "new"
    assert compare(now, [Known(1, former, is_forgotten=True)]).outcome == "supersedes"


def slow_names(text: str, other: str) -> set[str]:
    """The words with a capital, one character after the other.

    Those that begin a sentence are left out if they are frequent or if one of the two texts has them in small letters.
    """
    if not any(char.islower() for char in text):
        return set()
    found, word, begins = set(), "", True
    small = {part.strip(".:") for part in f"{text} {other}".split() if part[0].islower()}
    for char in f"{text} ":
        if char.isalpha():
            word += char
            continue
        folded = word.casefold()
        is_first = begins and (folded in small or folded == "now")
        if len(word) > 1 and word[0].isupper() and not is_first and word != "March":
            found.add(folded)
        begins = char in ".:" or (begins and not word)
        word = ""
    return found


def slow_words(text: str) -> list[str]:
    return ["".join(char if char.isalpha() else " " for char in part).strip() for part in text.casefold().split()]


def slow_conflict(one: str, other: str) -> bool:
    first, second = slow_words(one), slow_words(other)
    of_one, of_other = slow_names(one, other), slow_names(other, one)
    if of_one - set(second) and of_other - set(first):
        return True
    shared = [name for name in of_one | of_other if name in first and name in second]
    return any(
        first.index(name) < first.index(then) and second.index(then) < second.index(name)
        for name in shared
        for then in shared
    )


named = st.lists(
    st.sampled_from(["Ida", "Eva", "I", "March", "Now", "EVA", "ida", "has", "two", "cats.", "Cats", "and:", "小明"]),
    max_size=6,
).map(" ".join)


@given(named, named)
@example("Ida has two cats.", "Eva has two cats.")
@example("Now: Ida has", "Cats and: Ida has cats.")
def test_names_are_compared_as_by_the_slow_rule(one: str, other: str) -> None:
    verdict = compare(one, [Known(1, other)], threshold=0.2)
    if one.casefold() == other.casefold():
        assert verdict.outcome == "duplicate"
        return
    is_same = similarity(one, other) > 0.2 and not slow_conflict(one, other)
    assert verdict.outcome == ("supersedes" if is_same else "new")


statements = st.lists(st.sampled_from(["mira", "kai", "has", "two", "cats", "dogs", "小明"]), max_size=4).map(" ".join)


@given(statements, st.lists(statements, max_size=6), st.floats(0, 1))
def test_the_verdict_equals_comparing_each_memory(content: str, contents: list[str], threshold: float) -> None:
    known = [Known(at, text) for at, text in enumerate(contents)]
    verdict = compare(content, known, threshold=threshold)
    equal = [other.id for other in known if other.content == content]
    if equal:
        assert (verdict.outcome, verdict.id) == ("duplicate", equal[-1])
        return
    rated = [(similarity(content, other.content), other.id) for other in known]
    above = [one for one in rated if one[0] > threshold]
    expected = ("supersedes", max(above)[1]) if above else ("new", None)
    assert (verdict.outcome, verdict.id) == expected
