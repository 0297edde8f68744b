"""What is folded next, and what a step was made from."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.scenes.recap_fold import (
    MOST_SCENES,
    NO_RECAP,
    ClosedScene,
    State,
    choose_fold,
    digest_of,
    find_limit,
    hash_step,
    hash_steps,
)

STATES = st.sampled_from(("made", "empty", "pending", "failed"))


def scenes_of(states: list[State]) -> list[ClosedScene]:
    return [
        ClosedScene(UUID(int=n), 5 * n - 4, 5 * n, state, digest_of(state, f"Scene {n}", f"What happened in {n}"))
        for n, state in enumerate(states, start=1)
    ]


@given(states=st.lists(STATES, max_size=20), excluded=st.integers(0, 6))
def test_a_fold_takes_settled_scenes_except_the_excluded(states: list[State], excluded: int) -> None:
    scenes = scenes_of(states)
    limit = find_limit([scene.last_seq for scene in reversed(scenes)], excluded, 5 * len(scenes) + 3)
    told = scenes[: max(len(scenes) - excluded, 0)]
    settled = next((n for n, scene in enumerate(told) if scene.state == "pending"), len(told))
    assert choose_fold(scenes, limit) == told[: min(settled, MOST_SCENES)]


def test_leaving_out_as_many_scenes_as_there_are_leaves_nothing() -> None:
    assert find_limit([15, 10, 5], 0, 18) == 18
    assert find_limit([15, 10, 5], 2, 18) == 5
    assert find_limit([15, 10, 5], 3, 18) == 0
    assert find_limit([], 1, 18) == 0


@given(states=st.lists(STATES, min_size=1, max_size=8), at=st.integers(0, 7), state=STATES)
def test_the_hash_of_a_step_depends_on_each_of_its_scenes(states: list[State], at: int, state: State) -> None:
    scenes = scenes_of(states)
    at %= len(scenes)
    other = [*scenes]
    other[at] = scenes[at]._replace(state=state, digest=digest_of(state, "Scene", "Told otherwise"))
    assert (hash_step(scenes) == hash_step(other)) == (scenes[at].digest == other[at].digest)


def test_scenes_without_a_valid_recap_share_one_digest() -> None:
    assert digest_of("pending", "A title", "An old recap") == digest_of("failed", None, "") == NO_RECAP
    assert digest_of("empty", None, "") != NO_RECAP
    assert digest_of("made", "A", "B") != digest_of("made", "AB", "")


def test_a_scene_belongs_to_the_step_with_its_last_message() -> None:
    scenes = scenes_of(["made", "made", "made"])
    assert hash_steps(scenes, [(1, 7), (8, 15), (16, 20)]) == [
        hash_step(scenes[:1]),
        hash_step(scenes[1:]),
        hash_step([]),
    ]
