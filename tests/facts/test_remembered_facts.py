"""A context reuses the facts that another one has read, if nothing else decides how they are shown."""

from typing import Any

import orjson
import pytest

from app.chats.settings import effective
from app.facts.segment import contribute
from app.layers.contribution import Contributed, View

_OF_USER = [["home", "01a1fd8d-0000-7000-8000-000000000001", "Lisbon", 5, 1]]
_OF_KAI = [["home", "01a1fd8d-0000-7000-8000-000000000002", "Porto", 5, 2]]
QUERIED = orjson.dumps({"rows": None, "user": _OF_USER, "character": [["Kai", _OF_KAI]], "global": None}).decode()


def show(character: str | None = None, queried: str = QUERIED, **given: Any) -> Contributed:
    # Each context has a string of its own.
    return contribute(View({}, str(queried.encode(), "utf-8"), effective({"facts": given}), character))


def test_equal_facts_are_rendered_once() -> None:
    assert show() is show()
    assert show().segments[0].items[0].text == "- home: Lisbon"


def test_changed_facts_are_rendered_again() -> None:
    assert show(queried=QUERIED.replace("Lisbon", "Madrid")).segments[0].items[0].text == "- home: Madrid"


def test_a_character_has_its_own_facts() -> None:
    assert [show(name).segments[0].items[0].text for name in (None, "Kai", "Mira")] == [
        "- home: Lisbon",
        "- home: Porto",
        "- home: Lisbon",
    ]


@pytest.mark.parametrize("given", [{"position": "in_chat"}, {"position": "in_chat", "depth": 5}, {"scan": True}])
def test_a_placement_applies_at_once(given: dict[str, Any]) -> None:
    assert show().segments[0].placement != show(**given).segments[0].placement


def test_a_budget_applies_at_once() -> None:
    assert show().segments[0].items
    assert not show(budget={"type": "absolute", "value": 4}).segments[0].items
