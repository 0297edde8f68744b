"""Operations on narratives: texts that grow, such as the summary. They run within the caller's unit of work.

A version of a narrative folds a *step*, a range of messages or scenes, into an earlier version, its base (`chain.py`).
Each version is stored with two hashes of these messages or scenes: as they were when it was made, and as they are now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson

from app.chats.hashes import range_hash
from app.kit.db import Connection, DbSession
from app.kit.errors import NotFound
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.wire import MAX_SEQ
from app.layers.derived import keep_refusals
from app.narratives import queries
from app.narratives.chain import Chain, Link
from app.narratives.models import NarrativeVersion


class VersionNotFound(NotFound):
    """The narrative has no such version."""

    code = "version_not_found"
    title = "Unknown version"


Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

NO_SOURCE = range_hash([])
"""The hash of an empty step."""


@dataclass(frozen=True, slots=True)
class Narrative:
    """Identifies a narrative of a line: `summary`, `recap` or `diary`. The subject of a diary is its character."""

    layer: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class FoldDraft:
    """The result of a fold, or a person's text; folds do not change `kept_text`, and `text` does not contain it."""

    text: str
    origin: Literal["model", "extractive", "person"]
    model: str | None = None
    prompt_version: str | None = None
    refusals: Sequence[Refusal] = ()
    kept_text: str = ""


class ListedVersion(NamedTuple):
    """A version with its state in a list of versions."""

    version: NarrativeVersion
    is_stale: bool
    in_prompt: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A version's own step, as needed to update its current hash."""

    subject: str
    version: int
    first_unit: int
    last_unit: int
    origin: str
    filters: Mapping[str, Any] | None
    source_hash: bytes
    current_hash: bytes


async def read_chain(db_session: DbSession, line: Line, narrative: Narrative, *, from_unit: int = MAX_SEQ) -> Chain:
    """Return the current version and the versions it was built on, as far back as a new fold may have to go.

    The chain goes back to the newest valid version that ends before `from_unit` and before every stale step. If there
    is none, it goes back to the first version. With the default `from_unit`, and if no step is stale, it is the current
    version alone.
    """
    return Chain(await queries.list_chain(db_session, _key(line, narrative), from_unit))


async def read_written(db_session: DbSession, line: Line, narrative: Narrative) -> Chain:
    """Return the whole chain of the current version if a person wrote any version, else an empty chain."""
    if not await queries.has_written(db_session, _key(line, narrative)):
        return Chain()
    return await read_chain(db_session, line, narrative, from_unit=1)


async def read_before(db_session: DbSession, line: Line, narrative: Narrative, link: Link) -> Chain:
    """Return the part of the current chain that `link`, one of its versions, was built on."""
    from_unit = min(link.first_unit, link.last_unit)
    chain = await read_chain(db_session, line, narrative, from_unit=from_unit)
    return Chain([one for one in chain.links if one.version < link.version])


async def read_version(db_session: DbSession, line: Line, narrative: Narrative, version: int) -> NarrativeVersion:
    """Return one version. Raises VersionNotFound."""
    found = await queries.find_version(db_session, _key(line, narrative), version)
    if found is None:
        raise _unknown(version)
    return found


async def find_text(connection: Connection, line: Line, narrative: Narrative, version: int) -> str | None:
    """Return the text of a version, or None if there is no such version."""
    return await queries.find_text(connection, _key(line, narrative), version)


async def find_kept_text(connection: Connection, line: Line, narrative: Narrative, link: Link) -> str:
    """Return the kept text of a version; "" if it has none."""
    return await queries.find_kept_text(connection, _key(line, narrative), link.version) if link.has_kept else ""


async def list_versions(
    db_session: DbSession, line: Line, narrative: Narrative, *, shown: int | None, before: int | None, limit: int
) -> list[ListedVersion]:
    """Return a page of versions, newest first; `shown` is the number of the version in the prompt."""
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
    """Return one version; `shown` is the number of the version in the prompt. Raises VersionNotFound."""
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
    first_unit: int,
    last_unit: int,
    begins_seq: int,
    source_hash: bytes,
    filters: Mapping[str, Any] | None,
    now: datetime,
) -> int:
    """Store the result of a fold into `base` as a new version, make it current and return its number.

    The caller has locked the line's row and checked that the base and the range are unchanged since they were read.
    The new version has the kept text of `base`. Later versions in the chain that are no longer valid are deleted, with
    the service's versions folded onto them.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, line, narrative)
    number = await queries.next_version(db_session, key)
    await queries.set_current(db_session, key, None)
    await queries.delete_with_descendants(db_session, key, chain.superseded_by(base))
    if base:
        draft = replace(draft, kept_text=await find_kept_text(db_session.raw, line, narrative, base))
    version = _version(key, number, draft, base.version if base else None, (first_unit, last_unit), begins_seq, now)
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
    keep: bool = False,
    begins_seq: int,
    now: datetime,
    edited: bool = False,
) -> int:
    """Store a person's text as a new version in place of the latest valid one, make it current and return its number.

    The new version covers the same material as the replaced one, or nothing if no version was valid. With `keep`, the
    text becomes the `kept_text` of the new version and of versions folded onto it, and every copy of the line contains
    the text. `edited` is whether the text once replaced a text of the service.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, line, narrative)
    former = chain.latest_valid()
    number = await queries.next_version(db_session, key)
    await queries.set_current(db_session, key, None)
    await queries.delete_with_descendants(db_session, key, chain.superseded_by(former))
    units = (former.first_unit, former.last_unit) if former else (1, 0)
    draft = FoldDraft("", "person", kept_text=text) if keep else FoldDraft(text, "person")
    version = _version(key, number, draft, former.base_version if former else None, units, begins_seq, now)
    version.source_hash = version.current_hash = NO_SOURCE
    version.edited = edited
    if former:
        replaced = await read_version(db_session, line, narrative, former.version)
        version.filters, version.begins_seq = replaced.filters, 0 if keep else replaced.begins_seq
        version.source_hash = version.current_hash = replaced.current_hash
        version.edited = edited or replaced.edited or replaced.origin != "person"
    await queries.insert_version(db_session, version)
    return number


async def make_current(db_session: DbSession, line: Line, narrative: Narrative, version: int) -> None:
    """Make a version the current one, on which later folds build. Raises VersionNotFound."""
    await read_version(db_session, line, narrative, version)
    await queries.set_current(db_session, _key(line, narrative), version)


async def delete_version(
    db_session: DbSession, line: Line, narrative: Narrative, version: int, *, now: datetime
) -> None:
    """Soft-delete a version. Raises VersionNotFound.

    If it was current, the highest remaining version becomes current. The deletion does not make versions that were
    folded onto it stale or invalid.
    """
    key = _key(line, narrative)
    found = await read_version(db_session, line, narrative, version)
    was_current = found.current
    await queries.soft_delete(db_session, key, [version], now)
    if was_current:
        await queries.set_current(db_session, key, await queries.find_newest(db_session, key))


async def discard_replaced(
    db_session: DbSession, line: Line, narrative: Narrative, link: Link, *, now: datetime
) -> None:
    """Remove a replaced version, earlier versions of the same step, and the service's versions folded onto these.

    If these versions were kept, a truncation of the line could make one of them current again. The caller makes sure
    that none of them is current. The versions of the step that a person wrote are soft-deleted; all others are deleted.
    """
    key = _key(line, narrative)
    found = await queries.list_in_place_of(db_session, key, link)
    await queries.soft_delete(db_session, key, [version for version, written in found if written], now)
    await queries.delete_with_descendants(db_session, key, [version for version, _ in found])


async def reset_current(db_session: DbSession, line: Line, narrative: Narrative) -> None:
    """Leave no version current, so that the next fold starts from an empty text. The versions are kept."""
    await queries.set_current(db_session, _key(line, narrative), None)


async def truncate(
    db_session: DbSession,
    line: Line,
    narrative: Narrative,
    from_unit: int,
    *,
    begins_seq: int,
    former_line: Line | None = None,
) -> None:
    """Remove coverage of `from_unit` and everything after it.

    Versions that end at `from_unit` or later are deleted if the service wrote them, or if they are soft-deleted. The
    other versions of people are shortened to end before `from_unit`; if their `begins_seq` is above the given one, they
    get the given one. Then the last remaining version of the chain becomes current. If none of the chain remains, the
    remaining version with the highest number becomes current. If no version was current before, none is afterwards.

    If `line` is a new copy, `former_line` is its original; the chain is read there, because the copy can lack the
    current version.
    """
    key = _key(line, narrative)
    chain = await read_chain(db_session, former_line or line, narrative, from_unit=from_unit)
    versions = [link.version for link in chain.links]
    await queries.truncate(db_session, key, from_unit, begins_seq)
    if not versions:
        return
    newest = await queries.find_newest(db_session, key, among=versions)
    if newest != versions[-1]:
        await queries.set_current(db_session, key, newest or await queries.find_newest(db_session, key))


async def rename_subject(db_session: DbSession, line: Line, narrative: Narrative, to: Narrative) -> None:
    """Rename a narrative to `to`. If `to` already has versions, remove the coverage of the narrative instead."""
    if not await queries.rename(db_session, _key(line, narrative), to.subject):
        await truncate(db_session, line, narrative, 1, begins_seq=0)


async def carry_over_edits(
    db_session: DbSession, line: Line, from_line_id: UUID, narrative: Narrative, *, begins_seq: int, now: datetime
) -> None:
    """Copy the latest valid text of a person from another line, unless this line's chain has that version already."""
    written = (await read_written(db_session, (line[0], from_line_id), narrative)).latest_valid(by_person=True)
    if written is None:
        return
    here = await read_chain(db_session, line, narrative, from_unit=1)
    if any(link.version == written.version for link in here.links):
        return
    version = await read_version(db_session, (line[0], from_line_id), narrative, written.version)
    text, edited = version.kept_text or version.text, version.edited
    await write_version(
        db_session,
        line,
        narrative,
        text,
        keep=written.has_kept,
        begins_seq=0 if written.has_kept else begins_seq,
        now=now,
        edited=edited,
    )


async def list_steps(
    db_session: DbSession, line: Line, layer: str, first_unit: int, last_unit: int, *, subject: str | None = None
) -> list[Step]:
    """Return the steps that overlap the range of units (inclusive), of all versions and not only current ones."""
    rows = await queries.list_steps(db_session, *line, layer, first_unit, last_unit, subject)
    return [
        Step(
            row["subject"],
            row["version"],
            row["first_unit"],
            row["last_unit"],
            row["origin"],
            orjson.loads(row["filters"]) if row["filters"] else None,
            row["source_hash"],
            row["current_hash"],
        )
        for row in rows
    ]


async def update_hashes(db_session: DbSession, line: Line, layer: str, rows: Sequence[tuple[str, int, bytes]]) -> None:
    """Write the current hashes of steps; `rows` are (subject, version, current_hash)."""
    if rows:
        await queries.update_hashes(db_session, *line, layer, rows)


def join_texts(kept_text: str, text: str) -> str:
    """Return the text of a version as a context contains it: the kept text, then the folded text."""
    return "\n\n".join(part for part in (kept_text, text) if part)


def _chain_to(links: Mapping[int, Link], version: int) -> Chain:
    """Return a version and the versions it was built on, as far as `links` has them."""
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
    units: tuple[int, int],
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
        first_unit=units[0],
        last_unit=units[1],
        origin=draft.origin,
        kept_text=draft.kept_text,
        text=draft.text,
        tokens=count_tokens(join_texts(draft.kept_text, draft.text)),
        model=draft.model,
        prompt_version=draft.prompt_version,
        refusals=keep_refusals(draft.refusals),
        edited=False,
        current=True,
        created_at=now,
    )
