"""The reference model of a narrative's versions: which are valid, and the hash and the words of each input."""

import hashlib
from collections.abc import Sequence

from app.chats.eligibility import Filters
from app.chats.hashes import DIGEST_BYTES, content_digest, range_hash
from tests.oracle.reference.lines import Line, Message
from tests.oracle.reference.tables import DiaryEntry, Scene, Tables, Version
from tests.oracle.service import WORD


def current_chain(versions: Sequence[Version]) -> list[Version]:
    """Return the current version and the stored versions that it was built on, oldest first."""
    by_number = {one.version: one for one in versions}
    chain: list[Version] = []
    at = next((one for one in versions if one.current), None)
    while at is not None:
        chain.insert(0, at)
        at = by_number.get(at.base_version or 0)
    return chain


def valid_versions(chain: Sequence[Version]) -> list[Version]:
    """Return the valid versions: those a person wrote, and fresh ones that begin the chain or follow a valid one."""
    valid: list[Version] = []
    for index, one in enumerate(chain):
        if one.by_person or (one.is_fresh and (index == 0 or chain[index - 1] in valid)):
            valid.append(one)
    return valid


def latest_valid(chain: Sequence[Version], before: int | None = None, *, by_person: bool = False) -> Version | None:
    """Return the latest valid version that ends before `before`; with `by_person`, only one that a person wrote."""
    fitting = [
        one
        for one in valid_versions(chain)
        if not one.deleted and (before is None or one.last_unit < before) and (one.by_person or not by_person)
    ]
    return fitting[-1] if fitting else None


def latest_usable(chain: Sequence[Version], before: int, *, by_person: bool = False) -> Version | None:
    """Return the latest valid version that ends before `before`, or with which a person wrote its kept text."""
    fitting = [
        one
        for one in valid_versions(chain)
        if not one.deleted and (one.last_unit < before or one.is_kept) and (one.by_person or not by_person)
    ]
    return fitting[-1] if fitting else None


def is_stale(chain: Sequence[Version], version: Version) -> bool:
    """Whether the input of a version has changed, or that of a version before it back to one that a person wrote."""
    index = chain.index(version)
    if not version.is_fresh:
        return True
    return index > 0 and not chain[index - 1].by_person and is_stale(chain, chain[index - 1])


# --- the input of versions, entries and scenes ---


def eligible(line: Line, first: int, last: int, filters: Filters) -> list[Message]:
    """Return the messages of a range (inclusive) that are summarised; of the filters, only `include_system` is used."""
    return [
        message
        for message in line.messages[max(first, 1) - 1 : last]
        if not (message.deleted or message.excluded or message.hidden or not message.text.strip())
        and message.kind != "thought"
        and message.role != "tool"
        and (message.role != "system" or filters.include_system)
    ]


def messages_hash(line: Line, first: int, last: int, filters: Filters) -> bytes:
    """Return the hash of a range of messages."""
    messages = eligible(line, first, last, filters)
    return range_hash((message.seq, content_digest(message.role, message.name, message.text)) for message in messages)


def messages_words(line: Line, first: int, last: int, filters: Filters) -> list[str]:
    """Return the unique words of a range of messages."""
    return [word for message in eligible(line, first, last, filters) for word in WORD.findall(message.text)]


def scenes_of(tables: Tables, step: Version) -> list[Scene]:
    """Return the scenes that a version of the running recap folds in."""
    return [scene for scene in tables.scenes if step.first_unit <= scene.last_seq <= step.last_unit]


def entries_of(tables: Tables, step: Version) -> list[DiaryEntry]:
    """Return the entries that a version of a folded diary folds in."""
    return [
        entry
        for entry in tables.entries
        if entry.character == step.subject and step.first_unit <= entry.number <= step.last_unit and entry.is_valid()
    ]


def step_hash(line: Line, tables: Tables, step: Version) -> bytes:
    """Return the hash of the current input of a version, without its base."""
    if step.layer == "summary":
        return messages_hash(line, step.first_unit, step.last_unit, step.filters)
    if step.layer == "recap":
        return range_hash((scene.last_seq, _scene_digest(scene)) for scene in scenes_of(tables, step))
    entries = entries_of(tables, step)
    return range_hash((entry.number, hashlib.sha256(entry.content.encode()).digest()) for entry in entries)


def step_words(line: Line, tables: Tables, step: Version) -> list[str]:
    """Return the unique words of the current input of a version, without its base."""
    if step.layer == "summary":
        return messages_words(line, step.first_unit, step.last_unit, step.filters)
    if step.layer == "recap":
        texts = [f"{scene.title or ''} {scene.recap}" for scene in scenes_of(tables, step) if scene.contributes]
    else:
        texts = [entry.content for entry in entries_of(tables, step)]
    return WORD.findall("\n".join(texts))


def _scene_digest(scene: Scene) -> bytes:
    if not scene.is_valid:
        return bytes(DIGEST_BYTES)
    return hashlib.sha256(f"{scene.title or ''}\0{scene.recap}".encode()).digest()[:DIGEST_BYTES]
