"""What layers do with their narratives: fold, write by hand, cut off, choose. Each call is one of a unit of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson

from app.chats.hashes import range_hash
from app.kit.db import Connection, DbSession
from app.kit.tokens import count_tokens
from app.kit.wire import MAX_SEQ
from app.narratives import queries
from app.narratives.chain import Chain, Link
from app.narratives.errors import VersionNotFound
from app.narratives.models import NarrativeVersion

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

NO_SOURCE = range_hash([])
"""The hash of a step of nothing."""


@dataclass(frozen=True, slots=True)
class Narrative:
    """Which narrative of a line: its layer's, and of whom if it has several."""

    layer: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class FoldDraft:
    """What a fold has made: the whole new text."""

    text: str
    origin: Literal["model", "extractive", "person"]
    model: str | None = None
    prompt_version: str | None = None


class ListedVersion(NamedTuple):
    """A version with what a list shows of it."""

    version: NarrativeVersion
    is_stale: bool
    in_prompt: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A version's own step, for those who rewrite its hash."""

    subject: str
    version: int
    first_place: int
    last_place: int
    origin: str
    filters: Mapping[str, Any] | None
    source_hash: bytes
    current_hash: bytes


async def read_chain(db_session: DbSession, line: Line, narrative: Narrative, *, from_place: int = MAX_SEQ) -> Chain:
    """The current version and those it was built on, back to one that is true and ends before `from_place`.

    By default no further than the newest true one needs, which mostly is the current one alone.
    """
    return Chain(await queries.list_chain(db_session, _key(line, narrative), from_place))


async def read_written(db_session: DbSession, line: Line, narrative: Narrative) -> Chain:
    """The current version and all it was built on if people wrote any of them, however far back; else nothing."""
    if not await queries.has_written(db_session, _key(line, narrative)):
        return Chain()
    return await read_chain(db_session, line, narrative, from_place=1)


async def read_before(db_session: DbSession, line: Line, narrative: Narrative, link: Link) -> Chain:
    """What a version of the chain was built on."""
    from_place = min(link.first_place, link.last_place)
    chain = await read_chain(db_session, line, narrative, from_place=from_place)
    return Chain([one for one in chain.links if one.version < link.version])


async def read_version(db_session: DbSession, line: Line, narrative: Narrative, version: int) -> NarrativeVersion:
    """One version. Raises VersionNotFound."""
    found = await queries.find_version(db_session, _key(line, narrative), version)
    if found is None:
        raise _unknown(version)
    return found


async def find_text(connection: Connection, line: Line, narrative: Narrative, version: int) -> str | None:
    """The text of a version; None if it is gone."""
    return await queries.find_text(connection, _key(line, narrative), version)


async def list_versions(
    db_session: DbSession, line: Line, narrative: Narrative, *, shown: int | None, before: int | None, limit: int
) -> list[ListedVersion]:
    """Return a page of versions, newest first; `shown` is the one in the prompt."""
    key = _key(line, narrative)
    versions = await queries.list_versions(db_session, key, before=before, limit=limit)
    links = await queries.list_links_between(db_session, key, [version.version for version in versions])
    by_version = {link.version: link for link in links}
    return [
        ListedVersion(one, _chain_to(by_version, one.version).is_stale(one.version), one.version == shown)
        for one in versions
    ]


async def get_version(
    db_session: DbSession, line: Line, narrative: Narrative, version: int, *, shown: int | None
) -> ListedVersion:
    """Return one version; `shown` is the one in the prompt. Raises VersionNotFound."""
    found = await list_versions(db_session, line, narrative, shown=shown, before=version + 1, limit=1)
    if not found or found[0].version.version != version:
        raise _unknown(version)
    return found[0]


async def save_fold(
    db_session: DbSession,
    line: Line,
    narrative: Narrative,
    draft: FoldDraft,
    *,
    base: Link | None,
    first_place: int,
    last_place: int,
    begins_seq: int,
    source_hash: bytes,
    filters: Mapping[str, Any] | None,
    now: datetime,
) -> int:
    """Write the version that a fold into `base` has made and make it current; returns its number.

    The chat's row is locked, and the caller has made sure that base and range are as they were read. Versions of the
    service that were behind the base and are not true any more go: this one stands for what they told.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, line, narrative)
    number = await queries.next_version(db_session, key)
    await queries.set_current(db_session, key, None)
    await queries.delete_with_descendants(db_session, key, chain.superseded_by(base))
    version = _version(key, number, draft, base.version if base else None, (first_place, last_place), begins_seq, now)
    version.filters = dict(filters) if filters is not None else None
    version.source_hash = version.current_hash = source_hash
    await queries.insert_version(db_session, version)
    return number


async def write_version(
    db_session: DbSession,
    line: Line,
    narrative: Narrative,
    text: str,
    *,
    begins_seq: int,
    now: datetime,
    edited: bool = False,
) -> int:
    """Put a person's text in the place of the newest true version, as the base of what comes; returns its number.

    It covers what that one covered. Without one it covers nothing yet, and everything there is is folded into it.
    `edited` says that the text was once put in the place of a text of the service.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, line, narrative)
    former = chain.newest_true()
    number = await queries.next_version(db_session, key)
    await queries.set_current(db_session, key, None)
    await queries.delete_with_descendants(db_session, key, chain.superseded_by(former))
    places = (former.first_place, former.last_place) if former else (1, 0)
    draft = FoldDraft(text, "person")
    version = _version(key, number, draft, former.base_version if former else None, places, begins_seq, now)
    version.source_hash = version.current_hash = NO_SOURCE
    version.edited = edited
    if former:
        replaced = await read_version(db_session, line, narrative, former.version)
        version.filters, version.begins_seq = replaced.filters, replaced.begins_seq
        version.source_hash = version.current_hash = replaced.current_hash
        version.edited = edited or replaced.edited or replaced.origin != "person"
    await queries.insert_version(db_session, version)
    return number


async def make_current(db_session: DbSession, line: Line, narrative: Narrative, version: int) -> None:
    """Have a version stand for the narrative, and what comes next be folded into it. Raises VersionNotFound."""
    await read_version(db_session, line, narrative, version)
    await queries.set_current(db_session, _key(line, narrative), version)


async def delete_version(
    db_session: DbSession, line: Line, narrative: Narrative, version: int, *, now: datetime
) -> None:
    """Delete a version; where it was the current one, the highest that is left is. Raises VersionNotFound.

    What was folded onto it stays as true, or as stale, as it was.
    """
    key = _key(line, narrative)
    found = await read_version(db_session, line, narrative, version)
    was_current = found.current
    await queries.bury(db_session, key, [version], now)
    if was_current:
        await queries.set_current(db_session, key, await queries.find_newest(db_session, key))


async def drop_replaced(db_session: DbSession, line: Line, narrative: Narrative, link: Link, *, now: datetime) -> None:
    """Take away a version that a person had replaced, and those that it had been put in the place of itself.

    Otherwise one of them would stand again where the end is cut off. The current version is none of them any more.
    """
    key = _key(line, narrative)
    found = await queries.list_in_place_of(db_session, key, link)
    await queries.bury(db_session, key, [version for version, written in found if written], now)
    await queries.delete_with_descendants(db_session, key, [version for version, written in found if not written])


async def begin_anew(db_session: DbSession, line: Line, narrative: Narrative) -> None:
    """Have no version be current: the next fold begins from nothing. The versions stay."""
    await queries.set_current(db_session, _key(line, narrative), None)


async def cut_off(db_session: DbSession, line: Line, narrative: Narrative, from_place: int, *, begins_seq: int) -> None:
    """Take away what tells of `from_place` and what follows.

    The service's versions go. A person's stay and end before it; so does their beginning, at `begins_seq` at the
    latest. The newest that is left of the chain becomes current.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, line, narrative, from_place=from_place)
    left = [
        link for link in chain.links if not link.deleted and (link.last_place < from_place or link.origin == "person")
    ]
    await queries.cut_off(db_session, key, from_place, begins_seq)
    if not left:  # in a copy that ends earlier than the current version begins there is none, but others are
        newest = await queries.find_newest(db_session, key)
        await queries.set_current(db_session, key, newest)
    elif left[-1] != chain.links[-1]:
        await queries.set_current(db_session, key, left[-1].version)


async def pass_on(db_session: DbSession, line: Line, narrative: Narrative, to: Narrative) -> None:
    """Have a narrative be another one, if nothing of that is there; else what the service folded of it goes."""
    if not await queries.rename(db_session, _key(line, narrative), to.subject):
        await cut_off(db_session, line, narrative, 1, begins_seq=0)


async def bring_written(
    db_session: DbSession, line: Line, from_line_id: UUID, narrative: Narrative, *, begins_seq: int, now: datetime
) -> None:
    """Take over the text that a person wrote on another line of the chat, if it is newer than what stands here."""
    written = (await read_written(db_session, (line[0], from_line_id), narrative)).newest_true(by_person=True)
    if written is None:
        return
    here = await read_chain(db_session, line, narrative, from_place=1)
    if any(link.version == written.version for link in here.links):
        return
    version = await read_version(db_session, (line[0], from_line_id), narrative, written.version)
    text, edited = version.text, version.edited
    await write_version(db_session, line, narrative, text, begins_seq=begins_seq, now=now, edited=edited)


async def list_steps(
    db_session: DbSession, line: Line, layer: str, first_place: int, last_place: int, *, subject: str | None = None
) -> list[Step]:
    """The steps that hold a place of the range (inclusive)."""
    rows = await queries.list_steps(db_session, *line, layer, first_place, last_place, subject)
    return [
        Step(
            row["subject"],
            row["version"],
            row["first_place"],
            row["last_place"],
            row["origin"],
            orjson.loads(row["filters"]) if row["filters"] else None,
            row["source_hash"],
            row["current_hash"],
        )
        for row in rows
    ]


async def update_hashes(db_session: DbSession, line: Line, layer: str, rows: Sequence[tuple[str, int, bytes]]) -> None:
    """Say what steps say now; `rows` are (subject, version, current_hash)."""
    if rows:
        await queries.update_hashes(db_session, *line, layer, rows)


def _chain_to(links: Mapping[int, Link], version: int) -> Chain:
    """The version and those it was built on, as far as they are known."""
    chain = []
    link: Link | None = links[version]
    while link is not None:
        chain.append(link)
        link = links.get(link.base_version) if link.base_version is not None else None
    return Chain(chain[::-1])


def _unknown(version: int) -> VersionNotFound:
    return VersionNotFound(f"There is no version {version}.")


def _key(line: Line, narrative: Narrative) -> queries.Key:
    return (*line, narrative.layer, narrative.subject)


def _version(
    key: queries.Key,
    number: int,
    draft: FoldDraft,
    base_version: int | None,
    places: tuple[int, int],
    begins_seq: int,
    now: datetime,
) -> NarrativeVersion:
    chat_key, line_id, layer, subject = key
    return NarrativeVersion(
        chat_key=chat_key,
        line_id=line_id,
        layer=layer,
        subject=subject,
        version=number,
        base_version=base_version,
        begins_seq=begins_seq,
        first_place=places[0],
        last_place=places[1],
        origin=draft.origin,
        text=draft.text,
        tokens=count_tokens(draft.text),
        model=draft.model,
        prompt_version=draft.prompt_version,
        edited=False,
        current=True,
        created_at=now,
    )
