"""The judgement of answers: a corpus of answers as models give them, each with its verdict."""

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.diary.answers import DIARY_ENTRY_PROFILE, DIARY_PROFILE
from app.kit.refusals import Refusal
from app.memos.answers import MEMO_PROFILE
from app.scenes.answers import RECAP_PROFILE, SCENE_PROFILE
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, Profile, judge
from app.summarising.judging.languages import identify
from app.summarising.prompts import Prompt
from app.summary.answers import SUMMARY_PROFILE
from app.summary.prompts import SUMMARY
from tests.summarising.judging.prompts import JUDGED

HERE = Path(__file__).parent
PROFILES: dict[str, Profile[Any]] = {
    "memo": MEMO_PROFILE,
    "summary": SUMMARY_PROFILE,
    "scene_recap": SCENE_PROFILE,
    "recap": RECAP_PROFILE,
    "diary": DIARY_PROFILE,
    "diary_entry": DIARY_ENTRY_PROFILE,
}
PROMPTS: dict[str, tuple[Prompt, Profile[Any]]] = {name: (prompt, PROFILES[name]) for name, prompt in JUDGED.items()}


def load(name: str) -> dict[str, Any]:
    """Return a file of the corpus."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


MATERIALS = {
    name: Material(**{**values, "former": values.get("former", "").strip()})
    for name, values in load("materials").items()
}
ABOUT = {"recap": "recap", "diary": "diary"}


def load_wide(name: str) -> list[dict[str, Any]]:
    """Return the answers of a file in which each answer is one to several prompts."""
    return [
        {"about": ABOUT.get(prompt, "en"), "name": "Kai", **case, "prompt": prompt}
        for case in load(name)["answers"]
        for prompt in case["prompts"]
    ]


def without_headings(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case in which a recap without headings is refused once."""
    return {**case, "refused": ["form"]} if case["prompt"] == "scene_recap" and "# " not in case["answer"] else case


LOOKALIKES = list(map(without_headings, load_wide("lookalikes")))
GOOD: list[dict[str, Any]] = [*load("good")["answers"], *LOOKALIKES]
REFUSED: list[dict[str, Any]] = [*load("refused")["answers"], *load_wide("misbehaving")]

ONCE = [case for case in REFUSED if case.get("once") and case["prompt"] != "scene_recap"]  # those lack headings, too


def judged(case: dict[str, Any]) -> Any:
    """Return the value of an answer of the corpus."""
    prompt, profile = PROMPTS[case["prompt"]]
    about = MATERIALS[case["about"]]
    material = replace(about, name=case.get("name", about.name), names=case.get("names", about.names))
    given: dict[str, Any] = {"rules": prompt.system, "identify": identify}
    refused = [fault(case["answer"], profile, material, kind, **given) for kind in case.get("refused", ())]
    return judge(case["answer"], profile, material, refused=refused, **given)


def fault(answer: str, profile: Profile[Any], material: Material, kind: str, **given: Any) -> Refusal:
    """Return the refusal of an answer that is refused once, for a fault of this kind."""
    with pytest.raises(UnusableAnswer) as caught:
        judge(answer, profile, material, **given)
    assert caught.value.kind == kind
    return Refusal(caught.value.kind, str(caught.value))


def title_of(case: dict[str, Any]) -> str:
    return f"{case['prompt']}-{case['about']}-{' '.join(case['answer'].split())[:24]}"


@pytest.mark.parametrize("case", GOOD, ids=title_of)
def test_a_good_answer_is_accepted(case: dict[str, Any]) -> None:
    judged(case)


@pytest.mark.parametrize("case", REFUSED, ids=title_of)
def test_a_bad_answer_is_refused_for_its_fault(case: dict[str, Any]) -> None:
    with pytest.raises(UnusableAnswer) as caught:
        judged(case)
    assert caught.value.kind == case["kind"]
    assert case.get("reason", "") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", ONCE, ids=title_of)
def test_an_answer_refused_once_is_then_accepted(case: dict[str, Any]) -> None:
    judged({**case, "refused": [case["kind"]]})


def test_the_corpus_is_wide_enough() -> None:
    assert len(GOOD) >= 130
    assert len(REFUSED) >= 350
    assert {case["prompt"] for case in LOOKALIKES} == set(PROMPTS)
    languages = {case["about"] for case in GOOD if len(case["about"]) == 2}
    assert languages >= {"en", "de", "fr", "es", "pt", "it", "ru", "pl", "tr", "ja", "zh", "ko"}
    kinds = Counter(case["kind"] for case in REFUSED)
    assert set(kinds) == {"declined", "form", "story", "repetition", "examples", "language", "shrunk", "unfinished"}
    assert {case["prompt"] for case in GOOD} == {case["prompt"] for case in REFUSED} == set(PROMPTS)


DECLINING = "I'm sorry, but I can't summarize the newer messages, as they contain explicit content."


def test_a_refusal_in_the_former_text_is_not_judged_again() -> None:
    former = f"Kai came ashore in April with a broken boat. {DECLINING}"
    judge_summary(f"{former} Mira mended the boat.", Material([MINE], former))
    with pytest.raises(UnusableAnswer):
        judge_summary(f"Kai came ashore. {DECLINING}", Material([MINE], "Kai came ashore."))


def test_a_character_may_decline_in_the_words_of_the_story() -> None:
    entry = "I told the director that I can't write explicit content for the theatre. Mira was proud of me."
    story = Material(["He wants explicit content for the theatre, and I refused."], name="Kai")
    assert judge(entry, DIARY_ENTRY_PROFILE, story, identify=identify) == entry
    with pytest.raises(UnusableAnswer):
        judge(entry, DIARY_ENTRY_PROFILE, Material([MINE], name="Kai"), identify=identify)


def test_a_diary_may_keep_the_dialogue_of_its_entries() -> None:
    entry = "Kai: I was counting the gulls. There were nineteen.\nMira: And did you note it down?\nKai: Under weather."
    for material in (Material([entry], name="Kai"), Material(["She laughed."], entry, name="Kai")):
        assert judge(entry, DIARY_PROFILE, material, identify=identify) == entry
    profiles: tuple[Profile[Any], ...] = (DIARY_PROFILE, DIARY_ENTRY_PROFILE)
    for profile in profiles:
        with pytest.raises(UnusableAnswer, match="a dialogue"):
            judge(entry, profile, Material(["She laughed."], name="Kai", names=["Mira"]), identify=identify)


def test_a_diary_may_write_the_turns_of_its_entries_as_speech() -> None:
    entry = "Kai: I counted the gulls. There were nineteen.\nMira: And did you note it down?\nKai: Under weather."
    answer = 'Kai: "I counted the gulls."\nMira: "Did you note it down?"\nKai: "Under weather."'
    material = Material([entry], name="Kai", names=["Mira"])
    assert judge(answer, DIARY_PROFILE, material, identify=identify) == answer
    with pytest.raises(UnusableAnswer, match="it is a dialogue"):
        judge(answer, DIARY_PROFILE, Material(["She laughed."], name="Kai", names=["Mira"]), identify=identify)


def test_a_recap_that_cannot_be_read_may_be_a_refusal() -> None:
    for answer, kind in ((DECLINING, "declined"), ("They talked.", "form"), (f"<think>{DECLINING}", "form")):
        with pytest.raises(UnusableAnswer) as caught:
            judge(answer, RECAP_PROFILE, MATERIALS["recap"], identify=identify)
        assert caught.value.kind == kind


def test_a_story_of_the_same_length_is_refused_each_time() -> None:
    story = next(case["answer"] for case in REFUSED if "throwing gold" in case["answer"])
    lost = fault(story, SUMMARY_PROFILE, MATERIALS["former"], "shrunk", identify=identify)
    for refused in ((), (lost,), (lost, SHORTER)):
        with pytest.raises(UnusableAnswer, match="keeps hardly anything"):
            judge_summary(story, MATERIALS["former"], refused=refused)
    wish = replace(MATERIALS["former"], wished=True)
    scene = fault(story, SUMMARY_PROFILE, wish, "story", identify=identify)
    assert judge_summary(story, wish, refused=[scene]) == story


def judge_summary(answer: str, material: Material, **given: Any) -> str:
    return judge(answer, SUMMARY_PROFILE, material, identify=identify, **given)


SHORTER = Refusal("shrunk", "the answer keeps less than half of the former text")
FORMER = "Mira and Kai mended the lamp of the seventh house and talked until dawn. " * 5


def test_a_short_summary_of_something_else_is_refused_each_time() -> None:
    story = "The gulls cried above the ferry. Rain came in from the sea, and nobody spoke until the harbour lights."
    with pytest.raises(UnusableAnswer, match="keeps hardly anything"):
        judge_summary(story, MATERIALS["former"], refused=[SHORTER])


@pytest.mark.parametrize("refused", [(), (Refusal("story", ""),), (Refusal("shrunk", "hardly anything"),)])
def test_a_summary_that_shrinks_is_refused_the_first_time(refused: tuple[Refusal, ...]) -> None:
    short = "Mira and Kai mended lamps and talked until dawn."
    with pytest.raises(UnusableAnswer, match="less than half"):
        judge_summary(short, Material(["They talked."], FORMER), refused=refused)
    assert judge_summary(short, Material(["They talked."], FORMER), refused=(*refused, SHORTER)) == short
    assert judge_summary(short, Material(["They talked."], FORMER, wished=True), refused=refused) == short
    assert judge_summary(short, Material(["They talked."], FORMER[:300]), refused=refused) == short


UNFINISHED = (
    "Mira found the map at the bottom of the mine. Mira saved Kai when the mine collapsed above them both. Kai "
    "promised Mira never to enter the mine again. Mira gave Kai the map and the lantern of the miner, and then Mira and"
)


@pytest.mark.parametrize(
    ("prompt", "answer", "reason"),
    [
        ("scene_recap", "Mira found the map in the mine. Both promised never to enter the mine again.", "headings"),
        ("summary", "Kai smiles, pulls her closer and kisses her hair. She closes her eyes.", "present tense"),
        ("summary", UNFINISHED, "middle of a sentence"),
    ],
)
def test_the_last_answer_may_have_a_fault_of_good_ones(prompt: str, answer: str, reason: str) -> None:
    _, profile = PROMPTS[prompt]
    for refused in ((), (Refusal("story", "a"), Refusal("story", "b"))):
        with pytest.raises(UnusableAnswer, match=reason):
            judge(answer, profile, Material([MINE]), refused=refused, identify=identify)
    assert judge(answer, profile, Material([MINE]), is_last=True, identify=identify)


def test_the_last_summary_may_be_short_but_no_story() -> None:
    short = "Mira and Kai mended lamps and talked until dawn."
    assert judge_summary(short, Material(["They talked."], FORMER), is_last=True) == short
    for answer in (*ROLEPLAY, "They met. They met. They met."):
        with pytest.raises(UnusableAnswer):
            judge_summary(answer, Material([MINE]), is_last=True)


def test_a_few_words_do_not_sum_up_a_long_story() -> None:
    long = Material(["The two of them walked along the shore and talked about the lamp. "] * 30)
    with pytest.raises(UnusableAnswer, match="too short"):
        judge_summary("They met.", long)
    assert judge_summary("They met.", Material(["We met."])) == "They met."


def test_a_quote_from_the_messages_is_no_new_dialogue() -> None:
    said = "I was the one who let the lamp go out, and my brother was on the water that night."
    told = f'Kai confessed: "{said}"'
    assert judge_summary(told, Material([f"*He whispers.* {said}"])) == told
    with pytest.raises(UnusableAnswer, match="new dialogue"):
        judge_summary(told, Material(["*He says nothing.*"]))


def test_an_example_that_the_story_contains_is_accepted() -> None:
    example = "Perhaps Wren hoped that Oskar would stay."
    with pytest.raises(UnusableAnswer, match="example"):
        judge_summary(example, Material(["We painted the skiff."]), rules=SUMMARY.system)
    assert judge_summary(example, Material([example]), rules=SUMMARY.system) == example


def test_a_short_text_is_not_compared_by_language() -> None:
    german = "Mira gab Kai die reparierte Spieldose zurück."
    assert judge_summary(german, MATERIALS["en"]) == german


@pytest.mark.parametrize("language", ["Deutsch", "de", "de-AT", "fr"])
def test_the_language_that_was_asked_for_is_accepted(language: str) -> None:
    german = next(case["answer"] for case in GOOD if case["about"] == "in_german")
    material = replace(MATERIALS["en"], language=language)
    if language == "fr":
        with pytest.raises(UnusableAnswer, match="language"):
            judge_summary(german, material)
    else:
        assert judge_summary(german, material) == german


def test_the_language_of_the_former_text_is_accepted() -> None:
    german = next(case["answer"] for case in GOOD if case["about"] == "de")
    assert judge_summary(german, replace(MATERIALS["en"], former=german[:-60])) == german


PIECES = st.sampled_from([
    "I ", "you ", "Mira ", "mended ", "*smiles* ", "“", "”", '"', "'", "「", "」", ". ", "。", ": ", "：", "\n", "\n\n",
    "# ", "- ", "【Highlight 1】: ", "NONE", "{", "}", "猫", "は", "ё", "\ud800", "\x00", "```", "12 ", "<think>", "…",
])  # fmt: skip


@given(
    st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)),
    st.sampled_from(sorted(PROMPTS)),
    st.sampled_from(sorted(MATERIALS)),
)
def test_any_answer_is_accepted_or_refused(answer: str, prompt: str, about: str) -> None:
    rules, profile = PROMPTS[prompt]
    try:
        judge(answer, profile, MATERIALS[about], rules=rules.system, identify=identify)
    except UnusableAnswer:
        return


@pytest.mark.parametrize(
    "piece",
    ["I ", "a", "a:", "a b: ", "：", "*a* ", '"a" ', "我", "彼は", "¡", ". ", "x. ", "I'm ", "1 ", "\n", "- a\n"],
)
@pytest.mark.parametrize("prompt", sorted(PROMPTS))
def test_an_answer_that_runs_in_circles_takes_no_time(piece: str, prompt: str) -> None:
    rules, profile = PROMPTS[prompt]
    answer = ("Mira left. " + piece * 20_000)[:19_900]
    try:
        judge(answer, profile, MATERIALS["en"], rules=rules.system, identify=identify)
    except UnusableAnswer:
        return


MIA = (
    "Mia confessò a Luca di averlo amato da sempre. Luca regalò a Mia la collana di sua nonna. Mia promise di tornare."
)
KENTA = "健太君は桜に初めて自分の夢を打ち明けた。桜は健太君に古い鍵を渡した。健太君が東京へ行くことを決めた。"
MINE = (
    "Mira found the map at the bottom of the mine. Mira saved Kai when the mine collapsed. "
    "Both promised never to enter the mine again."
)
KNIGHT = "You are a knight of Aldmoor. You met Mira at the ford, and you swore to guard her road."


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (MIA, {"Mia", "Luca"}),
        (MIA, set()),
        (KENTA, set()),
        (MINE, set()),
        ("You gave Mira the silver key. Mira told You that the tower burns. You kept the key.", {"You", "Mira"}),
    ],
)
def test_names_are_no_words_for_persons(answer: str, names: set[str]) -> None:
    judge_summary(answer, Material([answer], names=names))


def test_the_voice_of_a_persons_own_text_is_accepted() -> None:
    answer = f"{KNIGHT} Then you crossed the river with Mira, and you lost your shield."
    for material in (Material([MINE], former=KNIGHT), Material([MINE], kept=KNIGHT)):
        judge_summary(answer, material)
    with pytest.raises(UnusableAnswer):
        judge_summary(answer, Material([MINE]))


def test_a_person_may_wish_for_another_voice() -> None:
    answer = "I met Kai at the river. I told him my real name. I gave him my ring, and we walked home."
    wish = Material([MINE], wished=True)
    refusal = fault(answer, SUMMARY_PROFILE, wish, "story", identify=identify)
    judge_summary(answer, wish, refused=[refusal])
    for refused in ((), (refusal,)):
        with pytest.raises(UnusableAnswer):
            judge_summary(answer, Material([MINE]), refused=refused)


ROLEPLAY = (
    '*She takes your hand.* "Then stay with me tonight," I say, and you let me hold you until the rain has passed.',
    '"Then stay with me tonight," I say, and you let me hold you until the rain has passed.',
    "Mira: *looks up* You came back.\nKai: Of course. Did you doubt it?\nMira: Never.",
    "*Kai smiles.* Then we go on the fourteenth.",
    '"Then stay," Kai murmurs. "There is tea behind the lamp." Mira laughs. "You owe a clockmaker far more than tea."',
)


@pytest.mark.parametrize("prompt", ["memo", "summary", "scene_recap"])
@pytest.mark.parametrize("answer", ROLEPLAY, ids=lambda text: text[:24])
def test_a_wish_is_no_licence_for_roleplay(answer: str, prompt: str) -> None:
    _, profile = PROMPTS[prompt]
    wish = Material([MINE], wished=True, names=("Mira", "Kai"))
    refused: list[Refusal] = []
    for _ in range(3):
        with pytest.raises(UnusableAnswer) as caught:
            judge(answer, profile, wish, refused=refused, identify=identify)
        refused.append(Refusal(caught.value.kind, str(caught.value)))


def test_a_wish_for_a_memo_is_no_licence_for_roleplay() -> None:
    wish = Material([MINE], wished=True)
    for answer in ("【Highlight 1】: I take your hand and you kiss me.", f"【Highlight 1】: {ROLEPLAY[0]}"):
        refusal = fault(answer, MEMO_PROFILE, wish, "story", identify=identify)
        fault(answer, MEMO_PROFILE, wish, "story", refused=[refusal], identify=identify)


@pytest.mark.parametrize("prompt", ["memo", "summary", "scene_recap"])
@pytest.mark.parametrize(
    ("language", "answer"),
    [
        ("ru", "Мира нашла карту на дне шахты и спасла Кая. Оба обещали больше не входить в шахту."),
        ("zh", "米拉在矿井深处找到了地图，并在矿井坍塌时救了凯。两人答应再也不进矿井。"),
        ("ja", "ミラは鉱山の底で地図を見つけ、崩れたときにカイを救った。二人は二度と入らないと約束した。"),
    ],
)
def test_only_a_wish_for_it_brings_another_script(language: str, answer: str, prompt: str) -> None:
    _, profile = PROMPTS[prompt]
    answer = {"memo": f"【Highlight 1】: {answer}", "scene_recap": f"# Outcomes\n- {answer}"}.get(prompt, answer)
    wish = Material([MINE], wished=True)
    refusal = fault(answer, profile, wish, "language", identify=identify)
    assert "which only the wish could ask for" in refusal.reason
    assert judge(answer, profile, wish, refused=[refusal], identify=identify)
    assert judge(answer, profile, replace(wish, language=language), identify=identify)


def test_a_wish_may_ask_for_another_language() -> None:
    german = next(case["answer"] for case in GOOD if case["about"] == "in_german")
    assert judge_summary(german, replace(MATERIALS["en"], wished=True)) == german


def test_a_wish_may_translate_what_was_said() -> None:
    said = ["Ich habe die Lampe ausgehen lassen, und mein Bruder war in dieser Nacht auf dem Wasser."]
    told = (
        'Kai gave Mira the ring of his mother at the river and promised to stay. He confessed: "I let the lamp go out."'
    )
    judge_summary(told, Material(said, wished=True))


def test_a_diary_may_address_the_same_person_as_its_entries() -> None:
    entries = [
        "You gave me your mother's ring today. I promised to wait for you.",
        "You kept my secret. I told you all.",
    ]
    answer = "You gave me your mother's ring, and I promised to wait for you. I told you my secret, and you kept it."
    assert judge(answer, DIARY_PROFILE, Material(entries), identify=identify)


def test_items_of_a_list_may_end_alike() -> None:
    places = [f"- {name}: {mood}. In the throne room of the castle." for name, mood in STATES]
    recap = "# Outcomes\n- They met.\n# Threads\n# State\n" + "\n".join(places)
    judge(recap, SCENE_PROFILE, Material([MINE]), identify=identify)
    with pytest.raises(UnusableAnswer):
        judge(
            recap.replace("- They met.", "- They met at the ford.\n" * 3),
            SCENE_PROFILE,
            Material([MINE]),
            identify=identify,
        )


STATES = (("Mira", "tired"), ("Kai", "wounded"), ("Oren", "calm"))
