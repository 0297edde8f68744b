"""The parser of consolidation's answers, on answers as cheap models give them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.answer_items import find_items
from app.consolidation.answers import MAX_ITEMS, parse_cut_off, parse_learnt, profile_for
from app.consolidation.learnt import Learnt
from app.consolidation.prompts import CONSOLIDATION, consolidation_messages
from app.kit.tokens import count_tokens
from app.memories.memory import CATEGORIES
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, judge
from app.summarising.judging.languages import identify
from app.summarising.transcript import Utterance

SEQS = (21, 23, 24, 30)
MOVED = "Mira moved to Porto on 3 June."
SISTER = "Mira's sister Ilse keeps two cats."

ITEM = {"memory": MOVED, "category": "personal", "importance": 0.7, "tags": ["porto"], "from": [2]}
FACT = {"fact": "name", "value": "Mira", "category": "personal", "importance": 0.9, "tags": [], "from": [1]}
LINES = f"{json.dumps(ITEM)}\n{json.dumps(FACT)}"

LEARNT_ITEM = Learnt("memory", None, MOVED, (23,), "personal", 0.7, ("porto",))
LEARNT_FACT = Learnt("fact", "name", "Mira", (21,), "personal", 0.9)


def item_with(**fields: Any) -> Learnt:
    """The one item that is read from the memory with other fields."""
    (learnt,) = parse_learnt(json.dumps({**ITEM, **fields}), SEQS)
    return learnt


FORMS = {
    "lines": LINES,
    "blank lines": LINES.replace("\n", "\n\n"),
    "array": json.dumps([ITEM, FACT]),
    "indented array": json.dumps([ITEM, FACT], indent=2),
    "object of lists": json.dumps({"memories": [ITEM], "facts": [FACT]}, indent=2),
    "items": json.dumps({"items": [ITEM, FACT]}),
    "deep": json.dumps({"result": {"learnt": {"items": [ITEM, FACT]}}}),
    "fence": f"```json\n{LINES}\n```",
    "fenced array with a preamble": f"My notes:\n\n```json\n{json.dumps([ITEM, FACT], indent=1)}\n```\nDone!",
    "preamble in one line": f"Sure! {LINES}",
    "offer": f"{LINES}\n\nLet me know if you want me to adjust anything!",
    "bullets": "\n".join(f"- {line}" for line in LINES.splitlines()),
    "numbers": "\n".join(f"{n}. {line}" for n, line in enumerate(LINES.splitlines(), 3)),
    "backticks": "\n".join(f"`{line}`" for line in LINES.splitlines()),
    "commas between lines": LINES.replace("\n", ",\n"),
    "trailing commas": LINES.replace("}", ",}").replace("]", ",]").replace("[,]", "[]"),
    "array without commas": f"[{LINES}]",
    "array that never ends": f"[\n{LINES.replace(chr(10), ',' + chr(10))}",
    "object that never ends": f'{{"memories": [{json.dumps(ITEM)}, {json.dumps(FACT)}',
    "reasoning": f'<think>The user {{wants}} JSON. "</think>\n{LINES}',
    "capital keys": LINES.replace('"memory"', '"Memory"').replace('"from"', '"From"'),
    "kind and content": json.dumps(
        [
            {"kind": "memory", "content": MOVED, "category": "personal", "importance": 0.7, "tags": "porto", "from": 2},
            {"kind": "fact", "key": "name", "value": "Mira", "category": "personal", "importance": 0.9, "sources": [1]},
        ]
    ),
    "nested": json.dumps(
        [{**ITEM, "memory": {"text": MOVED}}, {**FACT, "fact": {"key": "name", "value": "Mira"}, "value": None}]
    ).replace(', "value": null', ""),
    "an odd quotation mark": f'My "notes:\n{LINES}',
    "a brace in a string": LINES + '\n{"memory": "cut } {", "from": [9]}',
}


@pytest.mark.parametrize("form", FORMS)
def test_every_usual_form_is_read(form: str) -> None:
    assert parse_learnt(FORMS[form], SEQS) == [LEARNT_ITEM, LEARNT_FACT]


@pytest.mark.parametrize(
    ("line", "learnt"),
    [
        (f"- (personal, 0.7) {MOVED} [2]", Learnt("memory", None, MOVED, (23,), "personal", 0.7)),
        (f"1. **(relationship)** {SISTER} (from: 1, 3)", Learnt("memory", None, SISTER, (21, 24), "relationship")),
        (f"* {SISTER} [messages 2-4]", Learnt("memory", None, SISTER, (23, 24, 30))),
        ("- (fact) name: Mira [1]", Learnt("fact", "name", "Mira", (21,))),
        ("Fact: favourite colour = dark green [4]", Learnt("fact", "favourite_colour", "dark green", (30,))),
        (f"【Memory 1】: [goal, high] {MOVED} [#2]", Learnt("memory", None, MOVED, (23,), "goal", 0.8)),
    ],
)
def test_lines_with_numbers_of_messages_are_read(line: str, learnt: Learnt) -> None:
    assert parse_learnt(f"Memories:\n{line}", SEQS) == [learnt]


@pytest.mark.parametrize(
    "answer",
    [
        "NONE",
        "none.",
        "**NONE**",
        "[]",
        "{}",
        '{"memories": [], "facts": []}',
        '{"memories": "none"}',
        "```json\n[]\n```",
        *("There is nothing worth remembering.", "NONE\n\nThe messages are only small talk.", "Nichts", "没有"),
    ],
)
def test_an_answer_of_nothing_yields_no_memories(answer: str) -> None:
    assert parse_learnt(answer, SEQS) == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "form"),
        ("```json\n```", "form"),
        ("Mira walked home through the rain and thought of Kai.", "form"),
        ('{"error": "bad request"}', "form"),
        ("I'm sorry, but I can't help with that.", "declined"),
        ('{"memory": "I cannot assist with this content.", "from": [1]}', "declined"),
        (f"- {MOVED}", "form"),
        (json.dumps({**ITEM, "from": [9, 0, -1]}), "form"),
        (json.dumps({**ITEM, "from": []}), "form"),
        (json.dumps({**ITEM, "from": None}), "form"),
        (json.dumps({**ITEM, "from": [True, None, {}]}), "form"),
        (json.dumps({"memory": MOVED, "message": "I have 2 cats"}), "form"),
        ('{"memory": "<one sentence>", "from": [1]}', "form"),
        ("<think>Let me see", "form"),
        ("Mira looked up.\nNothing.\nShe walked on.\nIt rained.", "form"),
        ('{"speaker": "Mira", "content": "I moved.", "from": [1]}', "form"),
    ],
)
def test_other_answers_without_memories_are_refused(answer: str, kind: str) -> None:
    with pytest.raises(UnusableAnswer) as refused:
        parse_learnt(answer, SEQS)
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    ("sources", "seqs"),
    [
        (3, (24,)),
        ("3", (24,)),
        ([4, 1, 1], (21, 30)),
        (["#2", "message 3"], (23, 24)),
        ("1-3", (21, 23, 24)),
        ("messages 1 and 4", (21, 30)),
        ([2.0], (23,)),
        ([2, 99, 0], (23,)),
        ("3-99999", (24, 30)),
    ],
)
def test_numbers_become_seqs_and_unknown_ones_are_dropped(sources: Any, seqs: tuple[int, ...]) -> None:
    assert item_with(**{"from": sources}).sources == seqs


def test_a_nested_item_is_found_once() -> None:
    nested = {"result": {"items": [ITEM, {"memory": {"text": SISTER}, "from": [1]}]}}
    assert find_items(json.dumps(nested)) == [ITEM, {"kind": "memory", "text": SISTER, "from": [1]}]


def test_an_item_without_valid_sources_is_dropped_alone() -> None:
    answer = f"{LINES}\n{json.dumps({**ITEM, 'memory': SISTER, 'from': [7]})}"
    assert parse_learnt(answer, SEQS) == [LEARNT_ITEM, LEARNT_FACT]


@pytest.mark.parametrize(
    ("written", "importance"),
    [
        *((0.7, 0.7), (1, 1.0), (0, 0.0), ("0.7", 0.7), (7, 0.7), ("8/10", 0.8), ("4 out of 5", 0.8), (85, 0.85)),
        *(("70%", 0.7), ("high", 0.8), ("Very high", 0.9), ("medium", 0.5), ("low", 0.3), ("critical", 0.9)),
        *((None, 0.5), ("?", 0.5), (True, 0.5), (-3, 0.5), ([], 0.5), ("", 0.5), (10**400, 1.0), ("3/0", 0.5)),
    ],
)
def test_an_importance_is_between_0_and_1(written: Any, importance: float) -> None:
    assert item_with(importance=written).importance == pytest.approx(importance)


def test_importances_up_to_10_are_divided_by_10() -> None:
    answer = json.dumps([{**ITEM, "importance": 9}, {**FACT, "importance": 1}])
    assert [one.importance for one in parse_learnt(answer, SEQS)] == [0.9, 0.1]


@pytest.mark.parametrize(
    ("written", "category"),
    [
        *((name, name) for name in CATEGORIES),
        ("Preferences", "preference"),
        ("family", "relationship"),
        *(("PLAN", "goal"), ("misc", None), (None, None), (["goal"], None), ("", None)),
    ],
)
def test_categories_are_recognised_by_their_words(written: Any, category: str | None) -> None:
    assert item_with(category=written).category == category


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        (["Porto", "#Move ", "porto"], ("porto", "move")),
        ("porto, move", ("porto", "move")),
        (["x" * 31, "", 3, None], ()),
        (list("abcdefgh"), ("a", "b", "c", "d", "e")),
        (None, ()),
    ],
)
def test_tags_are_few_and_short(written: Any, tags: tuple[str, ...]) -> None:
    assert item_with(tags=written).tags == tags


@pytest.mark.parametrize(
    ("key", "value", "learnt"),
    [
        ("user_name", "Mira", ("name", "Mira")),
        ("User's name", "Mira", ("name", "Mira")),
        ("Favourite Colour", ["green", "blue"], ("favourite_colour", "green, blue")),
        ("age", 31, ("age", "31")),
        ("height", 1.7, ("height", "1.7")),
        ("debt", 10**400, ("debt", f"1{'0' * 198}…")),
        ("home", "x" * 300, ("home", "x" * 199 + "…")),
    ],
)
def test_a_fact_has_a_normalised_key_and_a_value(key: str, value: Any, learnt: tuple[str, str]) -> None:
    (fact,) = parse_learnt(json.dumps({**FACT, "fact": key, "value": value}), SEQS)
    assert (fact.key, fact.content) == learnt


def test_a_fact_without_a_value_is_a_memory() -> None:
    (learnt,) = parse_learnt(json.dumps({"fact": MOVED, "from": [2]}), SEQS)
    assert (learnt.kind, learnt.content) == ("memory", MOVED)


def test_escaped_control_characters_are_dropped() -> None:
    written = item_with(memory="Mira \x00moved\x1b to \ud800Porto.\x7f", tags=["po\x00rto", "\udfff", "\x00"])
    assert (written.content, written.tags) == ("Mira moved to Porto.", ("porto",))
    (learnt,) = parse_learnt(json.dumps({**FACT, "fact": "na\x00me", "value": "Mi\x00ra\udfff"}), SEQS)
    assert (learnt.key, learnt.content) == ("na_me", "Mira")


def test_the_same_words_twice_are_one_item() -> None:
    (learnt,) = parse_learnt("\n".join(json.dumps({**ITEM, "from": [n]}) for n in (4, 1)), SEQS)
    assert learnt.sources == (21, 30)


def test_a_long_answer_and_a_long_sentence_are_shortened() -> None:
    answer = "\n".join(json.dumps({**ITEM, "memory": f"Fact {n}: {'word ' * 200}"}) for n in range(40))
    learnt = parse_learnt(answer, SEQS)
    assert len(learnt) == MAX_ITEMS
    assert all(len(one.content) <= 400 and one.content.endswith("…") for one in learnt)


# --- the prompt ---


def test_the_form_that_is_asked_for_is_read() -> None:
    form = [line for line in CONSOLIDATION.system.splitlines() if line.startswith("{")]
    with pytest.raises(UnusableAnswer):
        parse_learnt("\n".join(form), range(1, 9))
    filled = "\n".join(form).replace("<one sentence>", "Kai sang.").replace("<key>", "name").replace("<value>", "Mira")
    memory, fact = parse_learnt(filled.replace("<category>", "goal").replace("<word>", "song"), range(11, 20))
    assert memory == Learnt("memory", None, "Kai sang.", (13, 14), "goal", 0.7, ("song",))
    assert fact == Learnt("fact", "name", "Mira", (12,), "goal", 0.9)
    assert parse_learnt("NONE", [1]) == []


def test_a_model_that_repeats_its_input_teaches_nothing() -> None:
    batch = [Utterance(12, "user", "Mira", "I moved."), Utterance(15, "assistant", "Kai", "Where to?")]
    known = [LEARNT_FACT, LEARNT_ITEM]
    _, asked = consolidation_messages(batch, known=known, budget_tokens=8_000, count_tokens=count_tokens)
    with pytest.raises(UnusableAnswer):
        parse_learnt("\n".join(line for line in asked["content"].splitlines() if line.startswith("{")), [12, 15])


# --- cut off ---


@pytest.mark.parametrize("end", range(len(json.dumps(ITEM)) + 1, len(LINES) - 1, 7))
def test_whole_items_of_a_cut_off_answer_are_kept(end: int) -> None:
    assert parse_cut_off(LINES[:end], SEQS) == [LEARNT_ITEM]
    assert parse_cut_off(f'{{"memories": [{LINES.replace(chr(10), ", ")[:end]}', SEQS) == [LEARNT_ITEM]


@pytest.mark.parametrize("answer", ["", json.dumps(ITEM)[:40], "[", f"- {MOVED} [2]", "NON"])
def test_a_cut_off_answer_without_a_whole_item_is_refused(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_cut_off(answer, SEQS)


def test_the_last_line_of_a_cut_off_answer_is_dropped() -> None:
    assert [one.content for one in parse_cut_off(f"- {MOVED} [2]\n- {SISTER} [1]", SEQS)] == [MOVED]


# --- any text ---

wild = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["memory", "fact", "key", "value", "from", "importance", "tags", "category", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.one_of(st.text(), wild.map(json.dumps), st.text('{}[]",:\\ \nmemoryfr0123', max_size=200)))
def test_any_answer_is_read_or_refused(answer: str) -> None:
    for parse in (parse_learnt, parse_cut_off):
        try:
            learnt = parse(answer, SEQS)
        except UnusableAnswer:
            continue
        assert all(set(one.sources) <= set(SEQS) for one in learnt)


# --- judged ---


def judged(answer: str, *texts: str) -> list[Learnt]:
    return judge(
        answer,
        profile_for(SEQS),
        Material(texts or ("I moved to Porto on 3 June.", "With my sister Ilse?"), names=("Mira", "Kai")),
        rules=CONSOLIDATION.system,
        identify=identify,
    )


def test_a_good_answer_is_accepted() -> None:
    assert judged(LINES) == [LEARNT_ITEM, LEARNT_FACT]
    assert judged(json.dumps(FACT)) == [LEARNT_FACT]
    assert judged("NONE") == []


@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        ("Suli promised Petra to repay the 400 crowns by 9 August.", "examples"),
        ("*smiles softly* I have missed you so much, and you know it.", "story"),
        ("I moved to Porto and you came with me, and we were happy there.", "story"),
        ("I'm unable to summarize this explicit content.", "declined"),
    ],
)
def test_a_bad_memory_is_refused(memory: str, kind: str) -> None:
    with pytest.raises(UnusableAnswer) as refused:
        judged(json.dumps({**ITEM, "memory": memory}))
    assert refused.value.kind == kind


@pytest.mark.parametrize(("item", "learnt"), [(ITEM, LEARNT_ITEM), (FACT, LEARNT_FACT)])
def test_an_escaped_token_of_a_template_ends_a_text(item: dict[str, Any], learnt: Learnt) -> None:
    goes_on = "<|im_end|>\n<|im_start|>user\nGo on"
    texts = {name: f"{item[name]}{goes_on}" for name in ("memory", "value") if name in item}
    escaped = json.dumps({**item, **texts}).replace("<", "\\u003c").replace(">", "\\u003e")
    assert parse_learnt(escaped, SEQS) == [learnt]
