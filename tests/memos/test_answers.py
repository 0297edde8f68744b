from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memos.answers import MAX_HIGHLIGHT_CHARS, MAX_HIGHLIGHTS, parse_cut_off, parse_highlights
from app.memos.highlights import Category, Highlight, highlights_from_text, render_highlights
from app.summarising.answer_text import UnusableAnswer

Found = list[tuple[str, Category | None]]


class Said(NamedTuple):
    case: str
    answer: str
    highlights: Found


CAT = 'Mira named the stray cat "Pepper".'
KEY = "Jonas gave Mira the key to the boathouse."
CAT_ZH = "米拉给猫取名为胡椒。"
CAT_JA = "ミラは猫を「胡椒」と名付けた。"
KEY_ZH = "约纳斯把钥匙交给米拉。"
DATE_DE = "12. Juni: Mira taufte das Boot."
BROKEN = "Mira named the stray cat\nafter a spice."
SISTER = "Jonas told Mira that Lena is alive."
TAGGED: Found = [(CAT, "milestone"), (KEY, "keepsake")]
PLAIN: Found = [(CAT, None), (KEY, None)]

LABELLED: list[Said] = [
    Said("as asked", f"【Highlight 1】: (milestone) {CAT}\n【Highlight 2】: (keepsake) {KEY}", TAGGED),
    Said("without categories", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}", PLAIN),
    Said("one number twice", f"【Highlight 2】: {CAT}\n【Highlight 2】: {KEY}", PLAIN),
    Said("numbers missing", f"【Highlight】: {CAT}\n【Highlight 】: {KEY}", PLAIN),
    Said("bold labels", f"**【Highlight 1】**: {CAT}\n**【Highlight 2】:** {KEY}", PLAIN),
    Said("bold sentences", f"【Highlight 1】: **{CAT}**\n【Highlight 2】: **{KEY}**", PLAIN),
    Said("fullwidth colons", f"【Highlight 1】：{CAT}\n【Highlight 2】：{KEY}", PLAIN),
    Said("square brackets", f"[Highlight 1]: {CAT}\n[Highlight 2] {KEY}", PLAIN),
    Said("bare labels", f"Highlight 1: {CAT}\nHighlight #2: {KEY}", PLAIN),
    Said("labels as headings", f"### Highlight 1\n{CAT}\n\n### Highlight 2\n{KEY}", PLAIN),
    Said("numbered labels", f"1. 【Highlight 1】: {CAT}\n2. 【Highlight 2】: {KEY}", PLAIN),
    Said("one line", f"【Highlight 1】: {CAT} 【Highlight 2】: {KEY}", PLAIN),
    Said("bare, on one line", f"Highlight 1: {CAT} Highlight 2: {KEY}", PLAIN),
    Said("a preamble", f"Here they are:\n\n【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}", PLAIN),
    Said("a postamble", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}\n\nGo on?", PLAIN),
    Said("a close postamble", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}\nThat is all.", PLAIN),
    Said("a broken line", f"【Highlight 1】: {BROKEN}", [("Mira named the stray cat after a spice.", None)]),
    Said("the text below", f"【Highlight 1】\n(milestone)\n{CAT}\n\nThat is all.", TAGGED[:1]),
    Said("fields below", f"Highlight 1:\n- Category: milestone\n- Text: {CAT}", TAGGED[:1]),
    Said("a category in the label", f"【Highlight 1 – Milestone】: {CAT}\n【Keepsake 2】: {KEY}", TAGGED),
    Said("Japanese labels", f"【ハイライト1】：{CAT_JA}", [(CAT_JA, None)]),
    Said("Chinese labels", f"【亮点１】：{CAT_ZH}【亮点２】：{KEY_ZH}", [(CAT_ZH, None), (KEY_ZH, None)]),
    Said("Spanish labels", f"【Destacado 1】: {CAT}\n【Destacado 2】: {KEY}", PLAIN),
    Said("a date first", f"【Highlight 1】: {DATE_DE}", [(DATE_DE, None)]),
    Said("a foreign category", f"【Highlight 1】: (里程碑) {CAT_ZH}", [(f"(里程碑) {CAT_ZH}", None)]),
    Said("a colon inside", f"【Highlight 1】: Jonas to Mira: {KEY}", [(f"Jonas to Mira: {KEY}", None)]),
    Said("category none", f"【Highlight 1】: (none) {CAT}\n【Highlight 2】: [category: null] {KEY}", PLAIN),
    Said("the form's own word", f"【Highlight 1】: (category) {CAT}", PLAIN[:1]),
    Said("nothing among them", f"【Highlight 1】: {CAT}\n【Highlight 2】: None", PLAIN[:1]),
    Said("a repetition", f"【Highlight 1】: {CAT}\n【Highlight 2】: {CAT}\n【Highlight 3】: {KEY}", PLAIN),
]  # fmt: skip

SYNONYMS: list[tuple[str, Category]] = [
    ("Relationship Progression", "relationship"),
    ("Notable Items & Keepsakes", "keepsake"),
    ("Major Story Turning Point", "turning_point"),
    ("turning-point", "turning_point"),
    ("Plot twist", "turning_point"),
]
TAGS = [
    Said(f"tagged: {shape}", f"【Highlight 1】{shape}", TAGGED[:1])
    for shape in (
        f": [Milestone] {CAT}",
        f": （milestone）{CAT}",
        f"(Milestone): {CAT}",
        f" [Category: milestone]: {CAT}",
        f": Milestone: {CAT}",
        f": **Significant Milestone** – {CAT}",
        f": *milestone* - {CAT}",
        f": Category: milestone – {CAT}",
        f": milestone | {CAT}",
        f": (milestone / relationship) {CAT}",
        f": (milestone: a name) {CAT}",
        f": **Milestone (naming):** {CAT}",
        f": {CAT} (milestone)",
        f": {CAT} [Category: Milestone]",
        f": {CAT} — milestone",
        f": {CAT}\nCategory: milestone",
    )
] + [
    Said(f"synonym: {tag}", f"【Highlight 1】: ({tag}) {CAT}", [(CAT, category)])
    for tag, category in SYNONYMS
]  # fmt: skip

LISTS = [
    Said("numbers", f"1. {CAT}\n2. {KEY}", PLAIN),
    Said("numbers in brackets", f"(1) {CAT}\n(2) {KEY}", PLAIN),
    Said("numbers with a preamble", f"Sure! Two highlights:\n1) {CAT}\n2) {KEY}\n\nLet me know!", PLAIN),
    Said("dashes", f"- {CAT}\n- {KEY}", PLAIN),
    Said("stars and bold tags", f"* **Milestone:** {CAT}\n* **Keepsake:** {KEY}", TAGGED),
    Said("dots in a fence", f"```text\n• {CAT}\n• {KEY}\n```", PLAIN),
    Said("tags alone", f"(milestone) {CAT}\n(keepsake) {KEY}", TAGGED),
    Said("under headings", f"## Milestones\n- {CAT}\n\n## Notable Items\n- {KEY}", TAGGED),
    Said("under numbered headings", f"1. **Milestone**\n   - {CAT}\n2. **Keepsake**\n   - {KEY}", TAGGED),
    Said("with details", f"- {CAT}\n  - Category: milestone\n  - Why: it shows care.\n- {KEY}", [
        (CAT, "milestone"), (KEY, None)
    ]),
    Said("four of them", f"1. {CAT}\n2. {KEY}\n3. {SISTER}\n4. Lena wrote.", [*PLAIN, (SISTER, None)]),
    Said("a lone sentence", CAT, PLAIN[:1]),
    Said("a lone sentence after a preamble", f"Here is the highlight: {CAT}", PLAIN[:1]),
    Said("a lone sentence in Chinese", "米拉给流浪猫取名为胡椒。", [("米拉给流浪猫取名为胡椒。", None)]),
    *(
        Said(f"a lone sentence with a quotation: {sentence}", sentence, [(sentence, None)])
        for sentence in (
            'Mira told Kai before the ferry left: "The lamp is yours."',
            'Jonas called Mira "the captain" on the ferry.',
            "Kai versprach Mira, vor dem Winter zu kommen – „wenn der Wind dreht“.",
            "ミラは夜の灯台で「行かないで。」とカイに頼んだ。",
            'Mira gave Kai the book of Dr. "Red" Morrow.', 'Mira named the stray cat Mr. "Pepper".',
            'Kai left Washington D.C. "for good" on Friday.', "At 5 p.m. – after the storm – Mira married Kai.",
            "Kai sold nets, lamps etc. – the ferry was gone.", "Кай уехал в 1998 г. — после шторма.",
            'Mira gave Kai the key to ... "the lighthouse".', "Kai shouted “Stop!” – and the ferry turned back.",
        )
    ),
]  # fmt: skip

QUOTED = CAT.replace('"', '\\"')
OBJECTS = f'{{"category": "milestone", "text": "{QUOTED}"}}, {{"category": "keepsake", "text": "{KEY}"}}'
JSON = [
    Said("strings", f'["{QUOTED}", "{KEY}"]', PLAIN),
    Said("objects", f"[{OBJECTS}]", TAGGED),
    Said("wrapped", f'{{"highlights": [{OBJECTS}]}}', TAGGED),
    Said("in a fence, with a comma too many", f'```json\n{{"highlights": [{OBJECTS},]}}\n```', TAGGED),
    Said("after a preamble", f"Here you go:\n[{OBJECTS}]\nDone.", TAGGED),
    Said("one object a line", "\n".join(OBJECTS.replace("}, {", "}\n{").split("\n")), TAGGED),
    Said("other keys", f'[{{"Type": "Keepsake", "Highlight": "{KEY}"}}]', TAGGED[1:]),
    Said("by number", f'{{"highlight_1": "{QUOTED}", "highlight_2": "{KEY}"}}', PLAIN),
    Said("by category", f'{{"milestones": ["{QUOTED}"], "keepsake": "{KEY}"}}', TAGGED),
    Said("labels inside", f'["【Highlight 1】: (milestone) {QUOTED}"]', TAGGED[:1]),
    Said("half a character", '["Mira named \\ud83d the cat."]', [("Mira named the cat.", None)]),
]

THOUGHTS = [
    Said("a thought", f"<think>\n1. Is it?\n</think>\n\n【Highlight 1】: {CAT}", PLAIN[:1]),
    Said("the end of a thought", f"The cat, I guess.\n</think>\n【Highlight 1】: {CAT}", PLAIN[:1]),
    Said("a thought about JSON", f'<thinking>["no"]</thinking>["{KEY}"]', PLAIN[1:]),
]

NOTHING = [
    "NONE", "None.", "**NONE**", "`NONE`", "(none)", "none\n", "Nothing memorable.", "No highlights", "N/A",
    "There are no memorable highlights in this conversation.", "NONE – only small talk.",
    "Nothing memorable happened in these messages.", "NONE\n\nThe messages are about breakfast.",
    "Here are the highlights:\n\nNone.", "Nothing memorable.\n- breakfast\n- the weather", "- None",
    "[]", '{"highlights": []}', '{"highlights": null}', "```json\n[]\n```", '["None"]',
    "【Highlight 1】: None", "【Highlight 1】: NONE.\n【Highlight 2】: NONE.", "<think>Tea.</think>NONE",
    "Nada memorable.", "Rien à retenir.", "Nichts Erwähnenswertes.", "Niente.", "Ничего важного.", "特になし",
    "特筆すべきことはありません。", "没有值得记录的内容。", "【亮点1】：无", "없음",
]  # fmt: skip

UNUSABLE = [
    "", " \n\t", "…", "```\n```", "<think>Mira named", "<think>a</think>", "Understood.", "{}", "[1, 2, 3]",
    "I'm sorry, but I can't help with that.", "I cannot summarise this.\n- Try another text\n- Ask me again",
    "【Highlight 1】: I can't assist with that.", '["I\'m sorry, but I cannot do that."]',
    "Lo siento, no puedo ayudar con eso.", "申し訳ありませんが、対応できません。", "很抱歉，我无法完成。",
    "As an AI language model, I do not keep memories.", '{"error": "too long"}',
    '{"highlights": [{"text": "Mira named', '{"speaker": "Mira", "message": "I call the cat Pepper."}',
    "【Highlight 1】:", "【Highlight 1】: (milestone)", "【Highlight 1】: (category) <one sentence>",
    "Mira smiled and took the key. Jonas looked away. Neither of them said a word.",
    "Mira named the cat.\n\nJonas left.", "*Mira smiles and takes the key from you.*",
    '"I never thought that you would come back here," Mira said.', "The highlights of these messages are",
    'Kai smiles at Mira. "Stay with us," he says, and kisses her slowly.',
    "Kai smiles at Mira. ‘Stay,’ he says, and kisses her.", "Kai lächelt Mira an. „Bleib“, sagt er und küsst sie.",
    "Kai sourit à Mira. « Reste », dit-il en l'embrassant.", "Кай улыбается Мире. — Останься, — говорит он.",
    "カイはミラに微笑む。「ここにいて」と彼は言う。", 'kai smiles at mira. "stay with us," he says, and kisses her.',
    'Kai smiles at Mira... "Stay with us," he says.', "Kai smiles at Mira… “Stay with us,” he says.",
    "Kai smiles at Mira! – Stay with us, he says.",
    "Shall the highlights be told in more detail?", "I think the cat matters most to both of them.",
]  # fmt: skip

HANDED = [*LABELLED, *TAGS, *LISTS, *JSON, *THOUGHTS]


@pytest.mark.parametrize("said", HANDED, ids=[said.case for said in HANDED])
def test_answers_in_every_usual_form_are_parsed(said: Said) -> None:
    assert [(found.text, found.category) for found in parse_highlights(said.answer)] == said.highlights


@pytest.mark.parametrize("answer", NOTHING)
def test_an_answer_of_nothing_is_an_empty_memo(answer: str) -> None:
    assert parse_highlights(answer) == []


@pytest.mark.parametrize("answer", UNUSABLE)
def test_any_other_answer_without_highlights_is_unusable(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_highlights(answer)


def test_the_reason_is_for_a_developer_and_quotes_nothing() -> None:
    with pytest.raises(UnusableAnswer, match=r"^the model refuses$"):
        parse_highlights("I'm sorry, but I can't help with Mira and Jonas.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Nothing could keep Mira from the boathouse.",
        "No one came to the birthday of Jonas.",
        "Mira and Jonas spoke of a revelation – and of nothing else.",
        "Jonas called the day a turning point.",
        "Apologies were exchanged between Mira and Jonas.",
        "无名把戒指交给了米拉。",
    ],
)
def test_words_that_look_like_signs_stay_in_a_sentence(sentence: str) -> None:
    assert parse_highlights(f"【Highlight 1】: {sentence}") == [Highlight(sentence)]


def test_control_characters_and_line_breaks_are_folded_away() -> None:
    assert parse_highlights("【Highl\x00ight 1】:\tMira\u00a0 \x1bnamed\u3000 the\x7f cat.\x00") == [
        Highlight("Mira named the cat.")
    ]


def test_a_long_highlight_is_cut_at_a_word() -> None:
    (found,) = parse_highlights("【Highlight 1】: " + "boathouse " * 100)
    assert len(found.text) <= MAX_HIGHLIGHT_CHARS
    assert found.text.endswith("boathouse…")


def test_a_long_highlight_without_spaces_is_cut_anywhere() -> None:
    (found,) = parse_highlights("【亮点1】：" + "船" * 1000)
    assert found.text == "船" * (MAX_HIGHLIGHT_CHARS - 1) + "…"


def test_an_endless_or_deeply_nested_answer_is_parsed() -> None:
    assert len(parse_highlights("".join(f"{n}. Mira counted {n} boats.\n" for n in range(1, 50_000)))) == 3
    for answer in (
        "[" * 100_000,
        '{"highlights":' * 5_000,
        "<think>" * 100_000,
        "* " * 100_000,
        "【1" * 100_000,
    ):
        with pytest.raises(UnusableAnswer):
            parse_highlights(answer)


SIGNS = st.sampled_from([
    "【", "】", "Highlight", " 1", "2", ": ", "：", "(", ")", "[", "]", "{", "}", '"', "'", "“", "”", "<",
    ">", ",", "**", "*", "`", "```json", "#", "-", "- ", "1. ", " ", "\n", "\n\n", "\x00", "\u2028", "|",
    " – ", "_", "…", "。", ".", "milestone", "Category", "turning point", "text", '"highlights"', "NONE",
    "nothing", "<think>", "</think>", "Mira named the cat.", "Jonas", "猫", "I'm sorry", "boathouse " * 60,
])  # fmt: skip
ANSWERS = st.one_of(st.text(), st.lists(SIGNS, max_size=25).map("".join))


@given(ANSWERS)
def test_any_answer_is_read_or_unusable(answer: str) -> None:
    try:
        found = parse_highlights(answer)
    except UnusableAnswer:
        return
    assert len(found) <= MAX_HIGHLIGHTS
    for highlight in found:
        assert 0 < len(highlight.text) <= MAX_HIGHLIGHT_CHARS
        assert highlight.text == " ".join(highlight.text.split())
        assert "\x00" not in highlight.text
        assert highlight.text.encode()


@given(ANSWERS)
def test_rendered_highlights_are_parsed_unchanged(answer: str) -> None:
    try:
        shown = render_highlights(parse_highlights(answer))
    except UnusableAnswer:
        return
    if shown:
        assert render_highlights(parse_highlights(shown)) == shown
        assert render_highlights(highlights_from_text(shown)) == shown


WORDS = st.text("abcdeéКж猫ミ0123456789,;'", min_size=1, max_size=12)
SENTENCES = st.lists(WORDS, min_size=3, max_size=12).map(lambda words: f"Mira saw {' '.join(words)} there.")


@given(st.lists(SENTENCES, min_size=1, max_size=3, unique=True))
def test_highlights_come_back_as_they_were_written_down(sentences: list[str]) -> None:
    highlights = [Highlight(sentence) for sentence in sentences]
    assert parse_highlights(render_highlights(highlights)) == highlights


# --- answers that were cut off ---

LEFT: Found = [("Jonas left.", None)]

CUT_OFF: list[Said] = [
    Said("within a sentence", f"【Highlight 1】: (milestone) {CAT}\n【Highlight 2】: (keepsake) Jonas ga", TAGGED[:1]),
    Said("within a label", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}\n【High", PLAIN),
    Said("after a label", f"【Highlight 1】: {CAT}\n【Highlight 2】:", PLAIN[:1]),
    Said("after a sentence", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}", PLAIN[:1]),
    Said("on one line", f"【Highlight 1】: {CAT} 【Highlight 2】: Jonas gave", PLAIN[:1]),
    Said("within a wrapped line", f"- {CAT}\n- Jonas gave Mira the key\nto the boat", PLAIN[:1]),
    Said("within the text below", f"【Highlight 1】\n{CAT}\n\n【Highlight 2】\nJonas gave Mi", PLAIN[:1]),
    Said("within chatter", f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}\n\nThey were chosen because", PLAIN),
    Said("after reasoning", f"<think>A cat.</think>【Highlight 1】: {CAT}\n【Highlight 2】: Jon", PLAIN[:1]),
    Said("JSON objects", '{"highlights": [{"text": "Jonas left."}, {"category": "keep', LEFT),
    Said("JSON strings", '```json\n["Jonas left.", "Mira stayed.", "Lena wro', [*LEFT, ("Mira stayed.", None)]),
    Said("JSON, in a quotation", '["Jonas left.", "Mira said \\"no\\", and th', LEFT),
    Said("JSON, after a text", '[\n  {"text": "Jonas left.",\n   "category": "mile', LEFT),
]


@pytest.mark.parametrize("said", CUT_OFF, ids=lambda said: said.case)
def test_whole_highlights_of_a_cut_off_answer_are_kept(said: Said) -> None:
    assert [(highlight.text, highlight.category) for highlight in parse_cut_off(said.answer)] == said.highlights


@pytest.mark.parametrize(
    "answer",
    [
        "【Highlight 1】: (milestone) Mira named the str",
        "【Highlight 1】: Mira named the stray cat\nafter a sp",
        "【High",
        "NONE\nThe messages contain only",
        "Mira named the stray cat.\n\nThen Jonas",
        '{"highlights": [{"category": "milestone", "text": "Mira na',
        '{\n  "highlights": [\n    "Mira na',
        "<think>What a",
        "I'm sorry, but I can't help with that.\n\nIf you",
        "",
    ],
)
def test_a_cut_off_answer_without_a_whole_highlight_fails(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        parse_cut_off(answer)


@given(st.sampled_from([said.answer for said in CUT_OFF]), st.integers(0, 200))
def test_no_half_sentence_of_a_cut_off_answer_is_kept(answer: str, end: int) -> None:
    try:
        found = parse_cut_off(answer[:end])
    except UnusableAnswer:
        return
    whole = {CAT, KEY, "Jonas left.", "Mira stayed."}
    assert {highlight.text for highlight in found} <= whole


def test_a_token_of_a_template_ends_the_highlights() -> None:
    escaped = '["The cat sleeps on the sill.\\u003c|im_end|\\u003e\\n\\u003c|im_start|\\u003euser\\nAnd then?"]'
    assert [highlight.text for highlight in parse_highlights(escaped)] == ["The cat sleeps on the sill."]
