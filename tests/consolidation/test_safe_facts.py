import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.safe_facts import find_facts
from app.summarising.transcript import Utterance


def facts(text: str, role: str = "user") -> list[tuple[str, str]]:
    return [(one.key, one.value) for one in find_facts(Utterance(1, role, "Someone", text))]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Mira.", "Mira"),
        ("Hi, my name's Mira and I bake bread.", "Mira"),
        ("Hello! My name is Mira Okafor.", "Mira Okafor"),
        ("You can call me Kit, by the way.", "Kit"),
        ("Please call me O'Brien!", "O'Brien"),
        ("*bows* My name is Mira.", "Mira"),
        ('*bows* "My name is Mira."', "Mira"),
        ("“My name is Mira.” *She smiles.*", "Mira"),
        ("*Smiles softly* My name is Mira.", "Mira"),
        ("*Bows his head.* My name is Mira.", "Mira"),
        ("*The demon grins.* My name is Legion.", None),
        ("*A stranger enters.* My name is Vex, traveller.", None),
        ("*Vex enters the tavern.* My name is Vex.", None),
        ("My name is Legion, said the demon.", None),
        ("Let's play: you are a cop. My name is Al Capone.", None),
        ("My name is Bob, just kidding.", None),
        ("_The demon grins._ My name is Legion.", None),
        ("*The demon grins.* **My name is Legion.**", None),
        ("*Die Dämonin grinst.* Ich heiße Legion.", None),
        ("My name is Legion, the demon said.", None),
        ("*bows* *She smiles.* My name is Mira.", None),
        ("Good evening, traveller. *The demon grins.* My name is Legion.", None),
        ("Yes? *The demon's eyes glow.* My name is Legion.", None),
        ("*waves*, *The demon grins.* My name is Legion.", None),
        ("> *The demon grins.*\nMy name is Legion.", None),
        ("*The demon\ngrins.* My name is Legion.", None),
        ("My name is Legion! said the demon.", None),
        ("My name is Legion. I'm joking.", None),
        ("My name is Bob. Kidding!", None),
        ("My name is Mira. I'm not kidding.", "Mira"),
        ("My name is Mira. *The door opens.* I am nobody's fool.", "Mira"),
        ("I love *the old* sea. My name is Mira.", "Mira"),
        ("2 * the sum of 3 * x is fine. My name is Mira.", "Mira"),
        ("*smiles* It is nice to meet you! *bows* My name is Mira.", "Mira"),
        ("My name is Mira. As he said the other day, it is pretty.", "Mira"),
        ("My name is Mira. She said the cake was good.", "Mira"),
        ("My name is Mira. I asked the doctor.", "Mira"),
        ("My name is Mira. Please stay in character.", "Mira"),
        ("My name is Mira. No joking!", "Mira"),
        ("My name is Jean-Luc 😀", None),
        ("Ich heiße Jürgen und wohne in Köln.", "Jürgen"),
        ("Hallo, mein Name ist Änne.", "Änne"),
        ("Me llamo Íñigo y vivo aquí.", "Íñigo"),
        ("Je m'appelle Zoé.", "Zoé"),
        ("私の名前はミラです。", "ミラ"),
        ("你好。我叫小明。", "小明"),
        ("My name is Bond, James Bond.", "James Bond"),
        ("My name is Bond. James Bond.", "James Bond"),
        ("My name is Mira. Mira Okafor.", "Mira Okafor"),
        ("My name is Anna. Anna Karenina is a book.", "Anna"),
        ("My name is Will Smith.", "Will Smith"),
        ("Mein Name ist Lena Voss.", "Lena Voss"),
        ("Me llamo Ana, y vivo en Porto.", "Ana"),
        ("Mon nom est Zoé Martin.", "Zoé Martin"),
        ("Appelle-moi Zoé.", "Zoé"),
        ("Call me Kit.", "Kit"),
        ("You can call me Rosa, Tom.", "Rosa"),
        ("Just call me Will.", "Will"),
        ("My friends call me Jo-Ann!", "Jo-Ann"),
        ("I'm called Ishmael.", "Ishmael"),
        ("我叫王小明。", "王小明"),
        ("我叫小明", "小明"),
        ("我叫李子涵，今年十八岁。", "李子涵"),
        ("我叫欧阳娜娜。", "欧阳娜娜"),
        ("我叫Anna。", "Anna"),
        ("我的名字是露西。", "露西"),
        ("我的名字叫李雷。", "李雷"),
        ("私の名前は田中です。", "田中"),
        ("俺の名前はカイだ。", "カイ"),
        ("私の名前はさくらです。", "さくら"),
        ("My name is Legion, for we are many.", None),
        ("My name is Mr. Smith.", None),
        ("My name is J. R. Smith.", None),
        ("My name is Nobody.", None),
        ("My name is Secret.", None),
        ("My name is Who.", None),
        ("My name is Yours, or not.", None),
        ("My name is Mira. That was a lie.", None),
        ("My name is Mira. *she lied*", None),
        ("My name is Mira *she lied*", None),
        ("I had a strange dream last night. My name is Anna.", None),
        ("Call me Daddy.", None),
        ("Call me Sir.", None),
        ("Call me Stupid, but I love it.", None),
        ("Call me Rosa, but I doubt it.", None),
        ("Call me Captain Jack.", None),
        ("Call me Old-Fashioned.", None),
        ("Call me Ridiculous.", None),
        ("Call me Mommy!", None),
        ("I'm called Boss.", None),
        ("Mein Name ist Hase.", None),
        ("Mein Name ist Schall und Rauch.", None),
        ("Ich heiße Niemand.", None),
        ("Nenn mich Chef.", None),
        ("Me llamo Nadie.", None),
        ("Mi nombre es Secreto.", None),
        ("Je m'appelle Toi.", None),
        ("Je m'appelle Personne.", None),
        ("Mon nom est Secret.", None),
        ("Appelle-moi Chef.", None),
        ("我叫外卖了，你等一下。", None),
        ("我叫外卖。", None),
        ("我叫方便面。", None),
        ("我叫了一辆车。", None),
        ("我叫车。", None),
        ("我叫Uber。", None),
        ("我叫你别走。", None),
        ("我叫他不要来。", None),
        ("我叫小王，他不来。", None),
        ("我叫李老师。", None),
        ("我的名字是秘密。", None),
        ("俺の名前は何だ", None),
        ("俺の名前は何だ。", None),
        ("僕の名前は秘密だよ", None),
        ("僕の名前はないしょだ。", None),
        ("私の名前は長いです。", None),
        ("私の名前は普通です。", None),
        ("My name is on the list.", None),
        ("My name is not Mira.", None),
        ("My name is Mira?", None),
        ("Is my name Mira?", None),
        ("If you call me Kit, I answer.", None),
        ("Never call me Kit.", None),
        ("Call me tomorrow.", None),
        ("Call me Monday.", None),
        ("Call me Later!", None),
        ("She said her name is Mira.", None),
        ('"My name is Anna," she lied.', None),
        ('"My name is Anna." She lied.', None),
        ('"My name is Anna. I sell bread," she lied.', None),
        ('He looked up. "My name is Anna."', None),
        ("我叫他快点来我们这里一起吃晚饭。", None),
    ],
)
def test_a_name_is_read_only_if_it_is_certain(text: str, name: str | None) -> None:
    assert facts(text) == ([("name", name)] if name else [])


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("My favourite colour is green.", ("favourite_colour", "green")),
        ("My all-time favorite ice cream is definitely pistachio!", ("favorite_ice_cream", "pistachio")),
        ("My favourite colour is green, of course.", ("favourite_colour", "green")),
        ("My favourite colour is green because it calms me.", ("favourite_colour", "green")),
        ("My favourite colour is green and I can't stand red.", ("favourite_colour", "green")),
        ("My favourite food is mac and cheese 😀", ("favourite_food", "mac and cheese")),
        ("My favourite band is actually Mew these days.", ("favourite_band", "Mew")),
        ("My favourite film is Still Alice.", ("favourite_film", "Still Alice")),
        ("My favourite number is 7.", ("favourite_number", "7")),
        ("My favourite language is C++, and I write it daily.", ("favourite_language", "C++")),
        ("My favourite hobby is hiking.", ("favourite_hobby", "hiking")),
        ("My favourite season is spring.", ("favourite_season", "spring")),
        ("My favourite drink is hot chocolate.", ("favourite_drink", "hot chocolate")),
        ("My favourite aunt is Rosa.", ("favourite_aunt", "Rosa")),
        ("My favourite city is Paris.", ("favourite_city", "Paris")),
        ("My favourite film is The Secret Garden.", ("favourite_film", "The Secret Garden")),
        ("My favourite book is What Maisie Knew.", None),
        ("My favorite number is a secret.", None),
        ("My favourite animal is a mystery.", None),
        ("My favourite aunt is visiting us.", None),
        ("My favourite aunt is a doctor.", None),
        ("My favourite teacher is French.", None),
        ("My favourite flower is blooming.", None),
        ("My favourite food is delicious.", None),
        ("My favourite mug is blue.", None),
        ("My favorite color is the one you are wearing.", None),
        ("My favourite number is your age.", None),
        ("My favourite colour is green in this game.", None),
        ("My favourite part is when the dog jumps.", None),
        ("My favourite food is actually anything with charred edges.", None),
        ("My favourite colour is not green.", None),
        ("My favourite colour isn't green.", None),
        ("My favourite colour is green I think.", None),
        ("My favourite colour is green, I guess.", None),
        ("My favourite colour is maybe green.", None),
        ("My favourite colour is green or blue.", None),
        ("My favourite colour is green lol", None),
        ("My favourite colour is green, but only on Sundays.", None),
        ("My favourite colour is green, right?", None),
        ("My favourite colour is green…", None),
        ("My favourite city is Paris, Texas.", None),
        ("My favourite mug is broken.", None),
        ("My favourite bar is in Lisbon.", None),
        ("My birthday is on 3 May.", ("birthday", "3 May")),
        ("My birthday is March 3rd, 1990.", ("birthday", "March 3rd, 1990")),
        ("My birthday is the 4th of July, and I love fireworks.", ("birthday", "the 4th of July")),
        ("My birthday is 04/07 btw", ("birthday", "04/07")),
        ("My birthday is 29 February.", ("birthday", "29 February")),
        ("My birthday is 31/12/99.", ("birthday", "31/12/99")),
        ("My birthday is 1990-12-31.", ("birthday", "1990-12-31")),
        ("My birthday is 31 February.", None),
        ("My birthday is April 31st.", None),
        ("My birthday is 29 February 2023.", None),
        ("My birthday is 30/02.", None),
        ("My birthday is 13/13.", None),
        ("My birthday is 2001-02-29.", None),
        ("My birthday is the 4th of July I think.", None),
        ("My birthday is in 3 days.", None),
        ("My birthday is the 4th.", None),
        ("My birthday is soon.", None),
        ("I'm allergic to that.", None),
        ("I'm allergic to nothing.", None),
    ],
)
def test_few_other_facts_are_read(text: str, fact: tuple[str, str] | None) -> None:
    assert facts(text) == ([fact] if fact else [])


@pytest.mark.parametrize(
    ("text", "allergens"),
    [
        ("I'm allergic to peanuts.", ["peanuts"]),
        ("I'm allergic to peanuts, sadly.", ["peanuts"]),
        ("I'm allergic to cats though", ["cats"]),
        ("I am severely allergic to peanuts, so I can't eat satay.", ["peanuts"]),
        ("I'm also allergic to bee stings!", ["bee stings"]),
        ("I'm allergic to peanuts and tree nuts.", ["peanuts", "tree nuts"]),
        ("I'm allergic to peanuts, bees, and the sun, by the way.", ["peanuts", "bees", "sun"]),
        ("I'm allergic to cats, Kai.", ["cats"]),
        ("I'm allergic to dust and it's terrible.", ["dust"]),
        ("I'm allergic to peanuts and shellfish.", ["peanuts", "shellfish"]),
        ("I'm allergic to peanuts, shellfish and penicillin!", ["peanuts", "shellfish", "penicillin"]),
        ("I'm allergic to cat hair and house dust mites.", ["cat hair", "house dust mites"]),
        ("I'm allergic to most reptiles and animals with fur.", ["reptiles", "animals with fur"]),
        ("I am allergic to shellfish and love dogs.", ["shellfish"]),
        ("I'm allergic to bees and hate needles.", ["bees"]),
        ("I'm allergic to cats and proud of it.", ["cats"]),
        ("I'm allergic to peanuts, love dogs.", []),
        ("I'm allergic to Mondays.", []),
        ("I'm allergic to drama.", []),
        ("I'm allergic to bullshit.", []),
        ("I'm allergic to stupid people and cats.", []),
        ("I'm not allergic to peanuts.", []),
        ("I'm allergic to peanuts, I think.", []),
        ("I'm allergic to peanuts or something.", []),
        ("I'm allergic to mornings lol", []),
        ("I'm allergic to cats, but not badly.", []),
        ("I'm allergic to cats, if that matters.", []),
        ("I'm allergic to anything with fur.", []),
        ("I'm allergic to peanuts and Tom is to bees.", []),
    ],
)
def test_each_allergy_is_a_fact(text: str, allergens: list[str]) -> None:
    assert facts(text) == [(f"allergic_to_{one.replace(' ', '_')}", one) for one in allergens]


@pytest.mark.parametrize("text", ["Hey! I'm Jonas", "Hi, I'm Irish.", "I'm tired.", "Hello! I'm Sorry to be late."])
def test_a_sentence_with_i_am_yields_no_name(text: str) -> None:
    assert facts(text) == []


@pytest.mark.parametrize("role", ["assistant", "narrator", "system"])
def test_only_the_user_states_facts(role: str) -> None:
    assert facts("My name is Mira.", role) == []


@pytest.mark.parametrize(
    ("text", "is_firm"),
    [("My name is Rosa.", True), ("Me llamo Rosa.", True), ("Call me Rosa.", False), ("Appelle-moi Rosa.", False)],
)
def test_only_call_me_gives_a_name_that_is_not_firm(text: str, is_firm: bool) -> None:
    assert [one.is_firm for one in find_facts(Utterance(1, "user", "Someone", text))] == [is_firm]


def test_a_corrected_name_comes_after_the_former_one() -> None:
    assert facts("My name is Alexander. Call me Alex.") == [("name", "Alexander"), ("name", "Alex")]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for start in ("", "My name is ", "我叫", "My favourite ", "My favourite colour is ", "I'm allergic to "):
        for key, value in facts(f"{start}{text}"):
            assert key
            assert value
