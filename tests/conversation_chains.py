"""Which versions of a narrative are true, worked out the slow way: link by link, and each hash from the material."""

import hashlib
from collections.abc import Sequence

from app.chats.eligibility import Filters
from app.chats.hashes import DIGEST_BYTES, content_digest, range_hash
from tests.conversation_model import Line, Said
from tests.conversation_service import WORD
from tests.conversation_tables import Entry, Scene, Tables, Version


def current_chain(versions: Sequence[Version]) -> list[Version]:
    """The current version and those it was built on, as far as they are there; oldest first."""
    by_number = {one.version: one for one in versions}
    chain: list[Version] = []
    at = next((one for one in versions if one.current), None)
    while at is not None:
        chain.insert(0, at)
        at = by_number.get(at.base_version or 0)
    return chain


def true_ones(chain: Sequence[Version]) -> list[Version]:
    """The versions that tell what is so: each step still says what it was made from, back to what a person wrote."""
    true: list[Version] = []
    for at, one in enumerate(chain):
        if one.by_person or (one.clean and (at == 0 or chain[at - 1] in true)):
            true.append(one)
    return true


def newest_true(chain: Sequence[Version], before: int | None = None, *, by_person: bool = False) -> Version | None:
    """The newest true version that ends before a place."""
    fitting = [
        one
        for one in true_ones(chain)
        if not one.deleted and (before is None or one.last_place < before) and (one.by_person or not by_person)
    ]
    return fitting[-1] if fitting else None


def is_stale(chain: Sequence[Version], version: Version) -> bool:
    """Whether a version tells of what has changed; what a person wrote knows nothing of what was before it."""
    at = chain.index(version)
    if not version.clean:
        return True
    return at > 0 and not chain[at - 1].by_person and is_stale(chain, chain[at - 1])


# --- what steps, entries and scenes are made from ---


def eligible(line: Line, first: int, last: int, filters: Filters) -> list[Said]:
    """The messages of a range (inclusive) that are told of; of all filters only the one for system messages is used."""
    return [
        said
        for said in line.messages[max(first, 1) - 1 : last]
        if not (said.deleted or said.excluded or said.hidden or said.blank)
        and said.kind != "thought"
        and said.role != "tool"
        and (said.role != "system" or filters.include_system)
    ]


def messages_hash(line: Line, first: int, last: int, filters: Filters) -> bytes:
    """What a range of messages says."""
    told = eligible(line, first, last, filters)
    return range_hash((said.seq, content_digest(said.role, said.name, said.text)) for said in told)


def messages_words(line: Line, first: int, last: int, filters: Filters) -> list[str]:
    """The words of a range of messages."""
    return [word for said in eligible(line, first, last, filters) for word in WORD.findall(said.text)]


def scenes_of(tables: Tables, step: Version) -> list[Scene]:
    """The scenes that a step of the running recap tells of."""
    return [scene for scene in tables.scenes if step.first_place <= scene.last_seq <= step.last_place]


def entries_of(tables: Tables, step: Version) -> list[Entry]:
    """The entries that a step of a folded diary tells of."""
    return [
        entry
        for entry in tables.entries
        if entry.character == step.subject and step.first_place <= entry.number <= step.last_place and entry.holds()
    ]


def step_hash(line: Line, tables: Tables, step: Version) -> bytes:
    """What a version's own step says now."""
    if step.layer == "summary":
        return messages_hash(line, step.first_place, step.last_place, step.filters)
    if step.layer == "recap":
        return range_hash((scene.last_seq, _scene_digest(scene)) for scene in scenes_of(tables, step))
    told = entries_of(tables, step)
    return range_hash((entry.number, hashlib.sha256(entry.content.encode()).digest()) for entry in told)


def step_words(line: Line, tables: Tables, step: Version) -> list[str]:
    """The words that a version has beside those of the version before."""
    if step.layer == "summary":
        return messages_words(line, step.first_place, step.last_place, step.filters)
    if step.layer == "recap":
        told = [f"{scene.title or ''} {scene.recap}" for scene in scenes_of(tables, step) if scene.is_told]
    else:
        told = [entry.content for entry in entries_of(tables, step)]
    return WORD.findall("\n".join(told))


def _scene_digest(scene: Scene) -> bytes:
    if not scene.holds:
        return bytes(DIGEST_BYTES)
    return hashlib.sha256(f"{scene.title or ''}\0{scene.recap}".encode()).digest()[:DIGEST_BYTES]
