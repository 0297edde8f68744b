"""Which scenes are folded into the running recap next, and the hashes of its steps. Pure.

A *step* is the range of scenes that one fold added to a version. Positions in the running recap are seqs: a scene
belongs to the step that contains its last seq. If an older scene changes, its step becomes stale, and the recap is
rebuilt from the version before that step.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from app.chats.hashes import DIGEST_BYTES, range_hash

MOST_SCENES = 8
"""The maximum number of scenes in one fold: as many as cheap models still read well."""

NO_RECAP = bytes(DIGEST_BYTES)
"""The digest of a scene without a valid recap. A step with such a scene becomes stale when the recap is made."""

State = Literal["made", "empty", "pending", "failed"]


class ClosedScene(NamedTuple):
    """A closed scene, as the running recap needs it.

    Attributes:
        scene_id: Its id.
        first_seq: Its first message.
        last_seq: Its last message, inclusive.
        state: The state of its recap: `made`, also by a person; `empty` if there is nothing to summarise; `failed` for
            good; `pending` if it is not made yet or stale.
        digest: The digest of its title and recap; NO_RECAP if it has no valid recap.

    """

    scene_id: UUID
    first_seq: int
    last_seq: int
    state: State
    digest: bytes


def digest_of(state: State, title: str | None, recap: str) -> bytes:
    """Return the digest of what the running recap is made from: a scene's title and recap."""
    if state in ("pending", "failed"):
        return NO_RECAP
    return hashlib.sha256(f"{title or ''}\0{recap}".encode()).digest()[:DIGEST_BYTES]


def find_limit(newest_breaks: Sequence[int], exclude_latest: int, head_seq: int) -> int:
    """Return the last seq that the running recap may cover without the newest `exclude_latest` closed scenes.

    `newest_breaks` are the last seqs of the closed scenes, newest first; the first `exclude_latest` + 1 are enough. If
    no scene is left out, the limit is the line's last seq, `head_seq`.
    """
    if exclude_latest == 0:
        return head_seq
    return newest_breaks[exclude_latest] if exclude_latest < len(newest_breaks) else 0


def choose_fold(scenes: Iterable[ClosedScene], limit_seq: int) -> list[ClosedScene]:
    """Return which of `scenes` to fold next; `scenes` are in order, after the version that the fold builds on.

    A fold stops before a pending scene, because scenes are folded in story order. A scene that has failed for
    good belongs to the fold, but adds no text: if its recap is made later, the fold becomes stale and is made again.
    """
    chosen: list[ClosedScene] = []
    for scene in scenes:
        if scene.state == "pending" or scene.last_seq > limit_seq or len(chosen) >= MOST_SCENES:
            break
        chosen.append(scene)
    return chosen


def hash_step(scenes: Iterable[ClosedScene]) -> bytes:
    """Return the hash of a step with these `scenes`, in order."""
    return range_hash((scene.last_seq, scene.digest) for scene in scenes)


def hash_steps(scenes: Sequence[ClosedScene], steps: Iterable[tuple[int, int]]) -> list[bytes]:
    """Return the current hash of each of `steps` (first_unit, last_unit; both inclusive), from `scenes` in order."""
    return [hash_step(scene for scene in scenes if first <= scene.last_seq <= last) for first, last in steps]
