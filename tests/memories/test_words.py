"""Which two texts of memories are about different people, or say the opposite."""

import pytest

from app.memories.dedupe import Known, compare, similarity
from app.memories.opposites import say_opposite

ALLERGIC = "Ida is allergic to peanuts, hazelnuts, walnuts and all kinds of shellfish."
LANTERN = "Tom promised Mira to bring the old silver lantern back to the lighthouse before the first storm."
NURSE = "Анна работает медсестрой в городской больнице и живёт рядом с вокзалом."
IS_ALLERGIC = ALLERGIC.replace("Ida", "{}")
XIAOMING = "{}对花生、榛子和核桃过敏，住在上海的医院附近，每天早上都去公园跑步。"
MIRA_KANA = "{}は港の近くの古い家に住んでいて、毎朝、犬と海まで散歩に行きます。"
MIRA_HANGUL = "{}는 항구 근처의 오래된 집에 살면서 아침마다 개와 함께 바다까지 산책한다"
LIVES = "Mira still lives with her sister Ilse and two old cats in a flat above the bakery."
WEDDING = "Mira will go to the wedding of her cousin in Lisbon next summer."

OTHERS = [
    (ALLERGIC, ALLERGIC.replace("Ida", "Eva")),
    (f"She said: {ALLERGIC}", f"She said: {ALLERGIC}".replace("Ida", "Eva")),
    (LANTERN, LANTERN.replace("Tom", "Sam")),
    (f"Mira: “{LANTERN}”", f"Mira: “{LANTERN}”".replace("Tom", "Sam")),
    (NURSE, NURSE.replace("Анна", "Инна")),
    (f"Mira: “Well! {ALLERGIC}”", f"Mira: “Well! {ALLERGIC}”".replace("Ida", "Eva")),
    ("Likes old silver lanterns and the sea.", "Dislikes old silver lanterns and the sea."),
]


@pytest.mark.parametrize(("former", "now"), OTHERS)
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_name_can_begin_a_sentence(former: str, now: str, is_forgotten: bool) -> None:
    for one, other in ((former, now), (now, former)):
        assert similarity(one, other) > 0.85
        assert compare(one, [Known(1, other, is_forgotten=is_forgotten)]).outcome == "new"
        assert compare(one, [Known(1, one), Known(2, other)]).id == 1


@pytest.mark.parametrize(
    ("text", "one", "other", "names"),
    [
        (XIAOMING, "小明", "小红", ["小明", "小红"]),
        (MIRA_KANA, "ミラ", "ユキ", ["ミラ", "ユキ"]),
        (MIRA_HANGUL, "미라", "지나", ["지나", "미라"]),
        (IS_ALLERGIC, "ida", "eva", ["Ida", "Eva Lind"]),
        (IS_ALLERGIC.upper(), "IDA", "EVA", ["Ida", "Eva"]),
        (IS_ALLERGIC, "Will", "May", ["Will", "May"]),
    ],
)
def test_known_names_are_found_in_any_script(text: str, one: str, other: str, names: list[str]) -> None:
    former, now = text.format(one), text.format(other)
    assert compare(now, [Known(1, former)], threshold=0.8).outcome == "supersedes"
    assert compare(now, [Known(1, former)], threshold=0.8, known_names=names).outcome == "new"
    assert compare(former, [Known(1, now)], threshold=0.8, known_names=names).outcome == "new"
    assert compare(f"{now} !", [Known(1, now)], threshold=0.8, known_names=names).outcome == "supersedes"


VIEILLE = "Mira habite dans la vieille maison près de la gare."
WORKS = "Works as a nurse at the harbour hospital and likes it."
TRABAJA = "Trabaja como enfermera en el hospital del puerto de Vigo."


@pytest.mark.parametrize(
    ("name", "former", "now"),
    [
        ("Marie de la Cour", VIEILLE, VIEILLE.replace("la vieille", "une vieille").replace("de la", "du côté de")),
        ("Jean de la Tour", VIEILLE, VIEILLE.replace("dans la", "dans cette")),
        ("María de los Ángeles", "Mira vive con los gatos.", "Mira vive con sus gatos."),
    ],
)
def test_small_words_of_a_known_name_are_no_names(name: str, former: str, now: str) -> None:
    for one, other in ((former, now), (now, former)):
        found = compare(f"{one} En el hotel de Marie.", [Known(1, other)], threshold=0.4, known_names=[name])
        assert found.outcome == "supersedes"


def test_a_known_name_without_capitals_is_found() -> None:
    former, now = "mira sah den tom.", "mira sah den ida."
    names = ["tom lind", "ida lind"]
    assert compare(now, [Known(1, former)], threshold=0.4, known_names=names).outcome == "new"


@pytest.mark.parametrize(
    ("former", "now", "is_live"),
    [
        (WORKS, WORKS.replace("Works", "Worked"), True),
        (WORKS.replace("Works", "Working"), WORKS.replace("Works", "Worked"), True),
        (WORKS.replace("Works", "Lives"), WORKS.replace("Works", "Lived"), True),
        (WORKS.replace("Works", "Owns"), WORKS.replace("Works", "Owned"), True),
        (WORKS.replace("Works", "User works"), WORKS.replace("Works", "Mira works"), True),
        (TRABAJA, TRABAJA.replace("Trabaja", "Trabajó"), False),
        (NURSE.replace("Анна работает", "Работает"), NURSE.replace("Анна работает", "Работала"), False),
        (WORKS.replace("Works", "Maria works"), WORKS.replace("Works", "Mario works"), False),
    ],
)
def test_first_words_in_another_form_are_the_same(former: str, now: str, is_live: bool) -> None:
    for one, other in ((former, now), (now, former)):
        outcome = compare(one, [Known(1, other)], threshold=0.6, known_names=["Mira"]).outcome
        assert outcome == ("supersedes" if is_live else "new")
        forgotten = Known(1, other, is_forgotten=True)
        assert compare(one, [forgotten], threshold=0.6, known_names=["Mira"]).outcome == "supersedes"
        assert compare(one, [forgotten], threshold=0.6, known_names=["Maria", "Mario"]).outcome == (
            "new" if "Mari" in one else "supersedes"
        )


def test_known_names_have_an_order_in_any_script() -> None:
    former, now = "小明每天都送小红回家。", "小红每天都送小明回家。"
    assert compare(now, [Known(1, former)], threshold=0.4).outcome == "supersedes"
    assert compare(now, [Known(1, former)], threshold=0.4, known_names=["小明", "小红"]).outcome == "new"


@pytest.mark.parametrize(
    ("names", "former", "now"),
    [
        (["小明", "小明子"], "小明子住在上海。", "小明子住在北京。"),  # the longer name is meant
        (["The Doctor", "A"], "The old lamp of the harbour is lit.", "An old lamp of the harbour is lit."),
        (["Will", "May"], "She said she will sail.", "She said she may sail."),
        (["Ida.", ".", ""], "She has two cats...", "She has three cats..."),
        (["明", "红"], "明天小红来。", "明天小明来。"),
    ],
)
def test_not_every_known_name_is_meant(names: list[str], former: str, now: str) -> None:
    assert compare(now, [Known(1, former)], threshold=0.1, known_names=names).outcome == "supersedes"


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (WEDDING, WEDDING.replace("will", "will not")),
        (WEDDING, WEDDING.replace("will go", "won't go")),
        (WEDDING, WEDDING.replace("will", "will never")),
        (f"It is true that {WEDDING}", f"It is not true that {WEDDING}"),
        (LIVES, LIVES.replace("still", "no longer")),
        (
            "Mira geht im Sommer zur Hochzeit ihrer Schwester.",
            "Mira geht im Sommer nicht zur Hochzeit ihrer Schwester.",
        ),
        ("Mira va a la boda de su hermana en Lisboa.", "Mira no va a la boda de su hermana en Lisboa."),
        ("Mira va au mariage de sa sœur à Lisbonne.", "Mira ne va pas au mariage de sa sœur à Lisbonne."),
        ("Мира поедет летом на свадьбу сестры.", "Мира не поедет летом на свадьбу сестры."),
        ("ミラは猫が好きです。", "ミラは猫が好きではないです。"),
        ("小明明年夏天会去上海。", "小明明年夏天不会去上海。"),
        ("미라는 여름에 결혼식에 간다", "미라는 여름에 결혼식에 안 간다"),
    ],
)
def test_forgetting_does_not_cover_the_opposite(former: str, now: str) -> None:
    for one, other in ((former, now), (now, former)):
        assert compare(one, [Known(1, other)], threshold=0.5).outcome == "supersedes"
        assert compare(one, [Known(1, other, is_forgotten=True)], threshold=0.5).outcome == "new"
        assert compare(f"{one} !", [Known(1, one, is_forgotten=True)], threshold=0.5).outcome == "supersedes"


def test_forgetting_covers_another_word_that_says_no() -> None:
    forgotten = Known(1, WEDDING.replace("will", "will not"), is_forgotten=True)
    assert compare(WEDDING.replace("will go", "won't go"), [forgotten], threshold=0.5).outcome == "supersedes"
    assert compare(WEDDING.replace("will", "will never"), [forgotten], threshold=0.5).outcome == "supersedes"


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (
            "Mira trabalha no hospital do Porto e mora com a irmã.",
            "Mira trabalha num hospital do Porto e mora com a irmã.",
        ),
        ("Mira vai no domingo ao Porto para vê-los.", "Mira vai domingo ao Porto para vê-los."),
        ("She lives at No. 5 Harbour Street.", "She lives at number 5 Harbour Street."),
        ("She lives at No. 5 Harbour Street en famille.", "She lives at 5 Harbour Street en famille."),
        ("Mira has no time for her brother.", "Mira has some time for her brother."),
        ("Mira likes not only cats but also dogs.", "Mira likes only cats but also dogs."),
        ("She asked whether Tom would not come.", "She asked whether Tom would come."),
        ("Tom comes, like it or not.", "Tom comes, like it or."),
        ("Isn't the harbour cold in May?", "Is the harbour cold in May?"),
        ("Mira ne fait que deux pas par jour.", "Mira ne fait que deux par jour."),
        ("Мира ждёт, пока не придёт почта.", "Мира ждёт, пока придёт почта."),
        ("Мира не раз плавала на остров.", "Мира раз плавала на остров."),
        ("ミラは未来の夢を語ります。", "ミラは将来の夢を語ります。"),
        ("入場料は無料です。", "入場料はただです。"),
        ("ミラは少なくとも二匹の猫を飼う。", "ミラは二匹の猫を飼う。"),
        ("ミラは明日行かなければならない。", "ミラは明日行かなければいけません。"),
        ("ミラと海へ行きませんか。", "ミラと海へ行きますか。"),
        ("小明的家不错，不过很小。", "小明的家很好，但是很小。"),
        ("小明是不是医生不知道。", "小明是医生不知道。"),
        ("미라는 아침마다 집 안 청소를 한다", "미라는 아침마다 집 청소를 한다"),
    ],
)
def test_forgetting_covers_what_only_seems_the_opposite(former: str, now: str) -> None:
    for one, other in ((former, now), (now, former)):
        assert compare(one, [Known(1, other, is_forgotten=True)], threshold=0.3).outcome == "supersedes"


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("Mira likes cats.", "Mira does not like cats."),
        ("Mira can swim.", "Mira cannot swim."),
        ("Mira hat eine Katze.", "Mira hat keine Katze."),
        ("Mira mora no Porto.", "Mira não mora no Porto."),
        ("ミラは海へ行きます。", "ミラは海へ行きません。"),
        ("小明有猫。", "小明没有猫。"),
        ("미라는 바다가 좋다", "미라는 바다가 좋지 않다"),
    ],
)
def test_the_opposite_is_recognised(former: str, now: str) -> None:
    assert say_opposite(former, now)
    assert say_opposite(now, former)
    assert not say_opposite(now, f"{now} !")
    assert not say_opposite(former, f"{now} 2")
