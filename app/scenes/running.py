"""What is folded into the running recap next, and what a step of it was made from. Pure.

The recap's places are seqs: a scene belongs to the step that holds its last one. Where an older scene changes, its step
is stale and the recap is told anew from the version before it on.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from app.chats.hashes import DIGEST_BYTES, range_hash

MOST_SCENES = 8
"""So many scenes at most are folded at once: what cheap models still read well."""

NOT_TOLD = bytes(DIGEST_BYTES)
"""The digest of a scene without a recap that holds: whatever comes to stand there, the step is another one then."""

State = Literal["made", "empty", "pending", "failed"]


class ClosedScene(NamedTuple):
    """A closed scene, as the running recap sees it.

    Attributes:
        scene_id: Its id.
        first_seq: Its first message.
        last_seq: Its last one, inclusive.
        state: `made`, also of what a person wrote; `empty` if nothing in it is to be told; `failed` for good;
            `pending` also of what has gone stale and is to be made again.
        digest: What its recap says; NOT_TOLD if it has none that holds.

    """

    scene_id: UUID
    first_seq: int
    last_seq: int
    state: State
    digest: bytes


def digest_of(state: State, title: str | None, recap: str) -> bytes:
    """What a scene gives to the running recap, as a digest."""
    if state in ("pending", "failed"):
        return NOT_TOLD
    return hashlib.sha256(f"{title or ''}\0{recap}".encode()).digest()[:DIGEST_BYTES]


def find_limit(newest_breaks: Sequence[int], exclude_latest: int, head_seq: int) -> int:
    """The last seq that the recap may tell of: the newest `exclude_latest` closed scenes are left out.

    `newest_breaks` are the last seqs of the closed scenes, newest first, at least `exclude_latest` + 1 of them if there
    are so many. Where nothing is left out that is the line's last seq, `head_seq`.
    """
    if exclude_latest == 0:
        return head_seq
    return newest_breaks[exclude_latest] if exclude_latest < len(newest_breaks) else 0


def choose_fold(scenes: Iterable[ClosedScene], limit_seq: int) -> list[ClosedScene]:
    """Which of `scenes`, which follow the newest true version in order, are folded into it next.

    One that is still to be made ends the run: the recap tells the story in its order. One that has failed for good
    does not; it is told once it is made after all.
    """
    chosen: list[ClosedScene] = []
    for scene in scenes:
        if scene.state == "pending" or scene.last_seq > limit_seq or len(chosen) >= MOST_SCENES:
            break
        chosen.append(scene)
    return chosen


def hash_step(scenes: Iterable[ClosedScene]) -> bytes:
    """What a step says that `scenes` belong to, in order."""
    return range_hash((scene.last_seq, scene.digest) for scene in scenes)


def hash_steps(scenes: Sequence[ClosedScene], steps: Iterable[tuple[int, int]]) -> list[bytes]:
    """What each of `steps` (first_place, last_place; both inclusive) says now, of `scenes` in order."""
    return [hash_step(scene for scene in scenes if first <= scene.last_seq <= last) for first, last in steps]
