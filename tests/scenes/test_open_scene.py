"""What changed messages mean for scenes: decided from the pairs and the open scene alone."""

from typing import Any

from app.chats.events import Pair
from app.scenes.open_scene import OpenScene, SceneChange, decide_change
from tests.chats.ranges import message


def pair(seq: int, **after: Any) -> Pair:
    before = message(seq)
    return before, before._replace(**after)


def test_hiding_by_scenes_does_not_change_the_open_scene() -> None:
    assert decide_change([pair(3, hidden_by="scenes")], OpenScene(1)) is None
    assert decide_change([], OpenScene(1)) is None


def test_an_edit_before_the_open_scene_leaves_it_counted() -> None:
    assert decide_change([pair(3, digest=b"new")], OpenScene(9, 2)) == SceneChange(
        [3], frozenset(), False, False, False
    )


def test_a_deletion_may_remove_the_open_scenes_last_message() -> None:
    changed = [pair(8, digest=b"new"), pair(9, deleted=True)]
    assert decide_change(changed, OpenScene(9)) == SceneChange([8, 9], frozenset({9}), True, True, True)


def test_without_a_break_every_message_is_in_the_open_scene() -> None:
    assert decide_change([pair(1, digest=b"new")], OpenScene()) == SceneChange([1], frozenset(), True, False, False)
