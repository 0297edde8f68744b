"""What a model writes before the first known heading of a recap is kept."""

import json

import pytest

from app.scenes.answer_parts import find_part
from app.scenes.answers import SceneText, parse_recap, parse_scene_recap
from app.summarising.answer_text import UnusableAnswer

FACTS = "- Mira and Kai were married in the storm.\n- Kai confessed that Kai had let the lamp go out."
REST = "Threads:\n- Who sent the feather?\n\nState:\n- place: the lighthouse"
MARKED = REST.replace("Threads:", "**Threads**").replace("State:", "**State**")
READ = SceneText("The storm", FACTS, "- Who sent the feather?", "- place: the lighthouse")
WITHOUT_TITLE = SceneText(None, READ.outcomes, READ.threads, READ.state)
RENDERED = f"# Outcomes\n{FACTS}\n\n# Threads\n- Who sent the feather?\n\n# State\n- place: the lighthouse"


@pytest.mark.parametrize(
    "answer",
    [
        f"{FACTS}\n\n{REST}",
        f"{FACTS}\n\n{MARKED}",
        f"Key developments:\n{FACTS}\n\n{REST}",
        f"What happened:\n{FACTS}\n\n{REST}",
        f"Developments:\n{FACTS}\n\n{REST}",
        f"What happened in this scene:\n{FACTS}\n\n{REST}",
        f"Here is the recap:\n\n{FACTS}\n\n{REST}",
        f"Sure! Here's the updated recap with the new scenes folded in.\n\n{FACTS}\n\n{REST}",
        f"## Scene Recap\n{FACTS}\n\n{MARKED}",
        f"# Outcomes (so far):\n{FACTS}\n\n{REST}",
        f"Outcomes (so far):\n{FACTS}\nOpen threads:\n- Who sent the feather?\nCurrent state:\n- place: the lighthouse",
        f"1. Outcomes (so far):\n{FACTS}\n2. Open threads (new):\n- Who sent the feather?\n3. State:\n"
        "- place: the lighthouse",
    ],
)
def test_lines_before_the_first_heading_are_outcomes(answer: str) -> None:
    assert parse_scene_recap(answer) == WITHOUT_TITLE
    assert parse_recap(answer) == RENDERED


@pytest.mark.parametrize(
    "title", ["Title: The storm", "**Title:** The storm", "# Title\nThe storm", "Title:\nThe storm"]
)
def test_outcomes_without_a_heading_follow_the_title(title: str) -> None:
    assert parse_scene_recap(f"{title}\n\n{FACTS}\n\n{REST}") == READ
    assert parse_scene_recap(f"Claro, te dejo el resumen.\n{title}\n\n{FACTS}\n\n{MARKED}") == READ
    assert parse_recap(f"{title}\n\n{FACTS}\n\n{REST}") == RENDERED


@pytest.mark.parametrize("title", ["# The storm", "**The storm**", "The storm", "Titre : The storm", "标题：The storm"])
def test_a_title_without_its_label_precedes_outcomes(title: str) -> None:
    assert parse_scene_recap(f"{title}\n\n{FACTS}\n\n{REST}") == READ
    assert parse_scene_recap(f"{title}\n# Outcomes\n{FACTS}\n\n{REST}") == READ


@pytest.mark.parametrize(
    "prose",
    [
        "Mira and Kai were married in the storm. Kai confessed.",
        "Mira and Kai were married in the storm, and Kai confessed to having let the lamp go out in June",
        "Ergebnis: Mira und Kai heirateten im Sturm.",
    ],
)
def test_prose_before_the_first_heading_is_outcomes(prose: str) -> None:
    assert parse_scene_recap(f"{prose}\n\n{MARKED}") == SceneText(None, prose, READ.threads, READ.state)
    assert parse_scene_recap(f"Title: The storm\n{prose}\n\n{REST}").outcomes == prose
    assert parse_recap(f"{prose}\n\n{REST}").startswith(f"# Outcomes\n{prose}\n\n# Threads\n")


def test_headings_of_a_models_own_stay_among_the_outcomes() -> None:
    scenes = "## Scene 1\n- Mira left.\n## Scene 2\n- Kai came.\n## Threads\n## State\n- place: at sea"
    assert parse_scene_recap(scenes) == SceneText(
        None, "Scene 1\n- Mira left.\nScene 2\n- Kai came.", "", "- place: at sea"
    )
    german = "Ergebnisse:\n- Mira ging.\nOffenes:\n- Wer kam?\nState:\n- Ort: auf See"
    assert (
        parse_recap(german) == "# Outcomes\nErgebnisse:\n- Mira ging.\nOffenes:\n- Wer kam?\n\n# State\n- Ort: auf See"
    )
    people = "Mira:\n- found the key\nKai:\n- confessed\nThreads:\n- Who came?"
    assert parse_scene_recap(people).outcomes == "Mira:\n- found the key\nKai:\n- confessed"


def test_lines_before_a_heading_of_outcomes_are_kept_too() -> None:
    assert parse_recap("- Mira had left.\n# Outcomes\n- Kai came.") == "# Outcomes\n- Mira had left.\n- Kai came."
    assert parse_scene_recap("Mira had left.\n\n# Outcomes\n# Threads").outcomes == "Mira had left."


@pytest.mark.parametrize(
    "before",
    [
        "Here is the recap:",
        "Hier ist die Zusammenfassung:",
        "Okay.",
        "Certainly! Below is the recap of the scene.",
        "Let me summarise the scene first.",
        "# Running Recap",
        "**Recap of the new scenes:**",
        "---",
    ],
)
def test_what_announces_a_recap_is_no_outcome(before: str) -> None:
    assert parse_recap(f"{before}\n\n# Outcomes\n{FACTS}\n\n{REST}") == RENDERED
    assert parse_scene_recap(f"{before}\n\nTitle: The storm\n# Outcomes\n{FACTS}\n\n{REST}") == READ


@pytest.mark.parametrize(
    "before",
    [
        "Of course! I've read through the messages carefully.",
        "Based on the conversation, I would structure it as follows.",
        "Claro, aquí tienes.",
        "Gern, hier ist der Überblick.",
        "Вот что произошло.",
        "Note: names were kept as in the text.",
        "Sure thing, boss.",
    ],
)
def test_remarks_before_a_heading_of_outcomes_are_dropped(before: str) -> None:
    assert parse_recap(f"{before}\n\n# Outcomes\n{FACTS}\n\n{REST}") == RENDERED
    assert parse_scene_recap(f"{before}\n\nTitle: The storm\nOutcomes:\n{FACTS}\n\n{REST}") == READ
    assert parse_recap(f"{before}\n{FACTS}\n# Outcomes\n- Mira left.\n\n{REST}") == RENDERED.replace(
        "\n\n# Threads", "\n- Mira left.\n\n# Threads"
    )


@pytest.mark.parametrize(
    "outcomes",
    [
        "This is the scene in which Mira brings Kai the box, and Kai confesses to having let the lamp go out.",
        "The following happened in this scene: Mira forgave Kai.",
        "The following happened in this scene: she forgave him.",
        "This is the scene in which “Mira” left.",
        "This is the scene in which she brings the box, and he confesses that he had let the lamp go out.",
    ],
)
def test_an_outcome_that_resembles_an_announcement_is_kept(outcomes: str) -> None:
    assert parse_scene_recap(f"{outcomes}\n\n{REST}") == SceneText(None, outcomes, READ.threads, READ.state)


@pytest.mark.parametrize(
    "said", ["Okay:", "Okay, I will now write the recap.", "Here is the recap with Outcomes, Threads and State."]
)
def test_an_announcement_without_a_name_is_dropped(said: str) -> None:
    assert parse_scene_recap(f"{said}\n{FACTS}\n\n{REST}") == WITHOUT_TITLE


def test_a_label_that_is_no_heading_names_a_group() -> None:
    read = parse_scene_recap("# Outcomes\n- A.\n# State\nMira:\n- mood: calm\nStatus:\n- the ferry: sunk")
    assert read.state == "- Mira, mood: calm\n- Status, the ferry: sunk"
    read = parse_scene_recap("Outcomes:\nSituation:\n- Kai left.\nThreads:\nStatus:\n- Who?\nState:\n- place: at sea")
    assert read == SceneText(None, "Situation:\n- Kai left.", "Status:\n- Who?", "- place: at sea")
    for recap in (
        "# Outcomes\nSituation:\n- Kai left.\n# State",
        "# Outcomes\n- Kai left.\n# Threads\nSituation:\n- Who?",
        "Outcomes:\nSituation:\n- Kai left.\nThreads:\n- Who?",
    ):
        read = parse_scene_recap(recap)
        assert "Situation:" in f"{read.outcomes}\n{read.threads}".split("\n")
        assert read.state == ""
        assert parse_recap(parse_recap(recap)) == parse_recap(recap)


def test_a_note_before_text_belongs_to_the_line() -> None:
    read = parse_scene_recap("# Outcomes\nState (new): Mira is queen.\n# Threads\nThread (red): ties Mira to Kai")
    assert read == SceneText(None, "State (new): Mira is queen.", "Thread (red): ties Mira to Kai", "")


@pytest.mark.parametrize(
    "line",
    [
        "- Open threads:",
        "Status (Mira):",
        "status: wounded",
        "- state: Ohio",
        "Situation Room:",
        "Here is where Mira lives:",
        "Open threads hung from the loom.",
    ],
)
def test_a_line_that_resembles_a_heading_is_none(line: str) -> None:
    assert find_part(line) is None


def test_fields_of_json_with_other_names_are_kept() -> None:
    fields = {"title": "The storm", "threads": ["Who sent the feather?"], "state": {"place": "the lighthouse"}}
    facts = [fact.removeprefix("- ") for fact in FACTS.split("\n")]
    for name in ("key_developments", "Outcomes", "ergebnisse"):
        assert parse_scene_recap(json.dumps({**fields, name: facts})) == READ
    assert parse_scene_recap(json.dumps({"thoughts": "Hm.", "outcomes": facts, **fields})) == READ


def test_a_state_of_json_can_be_a_list_of_labels_and_values() -> None:
    state = [{"label": "place", "value": "the inn"}, {"label": "time", "value": "late"}]
    read = parse_scene_recap(json.dumps({"outcomes": ["Mira left."], "threads": [], "state": state}))
    assert read.state == "- place: the inn\n- time: late"


def test_fields_of_json_that_are_no_outcomes_are_dropped() -> None:
    fields = {"threads": ["Who sent the feather?"], "state": {"place": "the lighthouse"}}
    facts = [fact.removeprefix("- ") for fact in FACTS.split("\n")]
    aside = {"scene_title": "The storm", "thinking": "Hm.", "characters": ["Mira", "Kai"]}
    assert parse_scene_recap(json.dumps({**aside, "ergebnisse": facts, **fields})) == READ
    assert parse_scene_recap(json.dumps({**aside, **fields})).outcomes == ""
    assert (
        parse_scene_recap(json.dumps({"title": "", "sceneTitle": "The storm", "ergebnisse": facts, **fields})) == READ
    )


@pytest.mark.parametrize("before", ["", "Here is the recap:\n\n", "Sure! Here's the recap of the scene in JSON:\n"])
@pytest.mark.parametrize("after", ["", "\n\nLet me know if you want it shorter!"])
def test_json_below_an_announcement_is_read(before: str, after: str) -> None:
    facts = [fact.removeprefix("- ") for fact in FACTS.split("\n")]
    fields = {"title": "The storm", "outcomes": facts}
    rest = {"threads": ["Who sent the feather?"], "state": {"place": "the lighthouse"}}
    for answer in (json.dumps(fields | rest), f"```json\n{json.dumps(fields | rest, indent=2)}\n```"):
        assert parse_scene_recap(f"{before}{answer}{after}") == READ
        assert parse_recap(f"{before}{answer}{after}") == RENDERED


@pytest.mark.parametrize("name", ["summary", "key_outcomes"])
def test_the_title_of_other_json_is_no_recap(name: str) -> None:
    fields = {"title": "The storm over the lighthouse", name: ["Mira and Kai were married in the storm."]}
    with pytest.raises(UnusableAnswer, match="data"):
        parse_scene_recap(json.dumps(fields))


FORMER = "# Outcomes\n- Mira left.\n\n# State\n- place: at sea"


@pytest.mark.parametrize("answer", [REST, f"# Outcomes\n{MARKED}", f"# Outcomes\n- None\n{MARKED}"])
def test_a_running_recap_never_loses_its_outcomes(answer: str) -> None:
    for former in (FORMER, "Mira left, and nobody saw her go.", "{Mira}"):
        with pytest.raises(UnusableAnswer, match="loses the outcomes") as caught:
            parse_recap(answer, former=former)
        assert caught.value.kind == "shrunk"
    rest = "# Threads\n- Who sent the feather?\n\n# State\n- place: the lighthouse"
    assert parse_recap(answer) == parse_recap(answer, former="# State\n- place: at sea") == rest


def test_outcomes_marked_as_unchanged_are_not_lost() -> None:
    assert parse_recap(f"# Outcomes\n(unchanged)\n{MARKED}", former=FORMER).startswith("# Outcomes\n- Mira left.\n\n")


@pytest.mark.parametrize(
    "written",
    [
        "Mira and Kai married in the storm\n- Kai confessed.",
        "This is the recap of all scenes. Mira and Kai married.",
        "Here is the recap:\nTitle: The storm\nMira and Kai married.",
    ],
)
def test_a_recap_of_a_person_stays_whole_if_unchanged(written: str) -> None:
    changed = parse_recap(f"# Outcomes\n(unchanged)\n{MARKED}", former=f"{written}\n# Threads\n- Who came?")
    assert changed == RENDERED.replace(FACTS, written)
    before = parse_recap(f"# Outcomes\n(unchanged)\n{MARKED}", former=f"{written}\n# Outcomes\n- Kai left.")
    assert before == RENDERED.replace(FACTS, f"{written}\n- Kai left.")


def test_all_fields_of_json_by_a_person_are_kept() -> None:
    former = json.dumps(
        {"title": "The storm", "outcomes": ["Mira left."], "notes": "Kai lies.", "characters": {"Mira": "is wounded"}}
        | {"threads": [], "state": {"place": "at sea"}}
    )
    kept = parse_recap(f"# Outcomes\n(unchanged)\n{MARKED}", former=former)
    for text in ("The storm", "Kai lies.", "Mira: is wounded", "Mira left.", "Who sent the feather?"):
        assert text in kept


def test_a_title_that_is_given_twice_is_read_once() -> None:
    answer = '{"title": "The ferry", "title": "The ferry", "outcomes": ["Mira left."]}'
    assert parse_scene_recap(answer).title == "The ferry"


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ('"threads": ["Who came?"], "Threads": ["Where is Kai?"]', ["Who came?", "Where is Kai?"]),
        ('"threads": ["Who came?"], "threads": "Where is Kai?"', ["Who came?", "Where is Kai?"]),
        ('"my notes": "Kai lies.", "My_Notes": "Mira knows."', ["Kai lies.", "Mira knows."]),
        ('"state": {"door": "shut", "door": "locked"}', ["door: shut locked"]),
        ('"lamps left": 0, "married": false, "alive": true', ["lamps left: 0", "married: false", "alive: true"]),
        ('"state": {"lamps left": 0, "married": false}', ["lamps left: 0", "married: false"]),
        (", ".join(f'"a": {n}' for n in range(5_000)), [f"a: {' '.join(map(str, range(5_000)))}"]),
    ],
)
def test_no_field_of_json_by_a_person_is_lost(fields: str, texts: list[str]) -> None:
    kept = parse_recap(
        "# Outcomes\n(unchanged)\n# Threads\n(unchanged)\n# State\n(unchanged)",
        former=f'{{"outcomes": ["Mira left."], {fields}}}',
    )
    assert [text for text in ["Mira left.", *texts] if text not in kept] == []


@pytest.mark.parametrize("depth", [300, 700])
def test_deeply_nested_json_is_read_or_refused(depth: int) -> None:
    nested = f'{{"outcomes": {"[" * depth}"Mira left."{"]" * depth}, "state": {{"place": "at sea"}}}}'
    try:
        assert parse_scene_recap(nested).outcomes == "- Mira left."
    except UnusableAnswer:
        assert depth > 300
    assert "Mira left." in parse_recap(f"# Outcomes\n(unchanged)\n{MARKED}", former=nested)
