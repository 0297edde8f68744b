"""The contribution of scenes to a context: the running recap, from the line's row. Pure."""

import re
from typing import Any

import orjson

from app.kit.tokens import count_tokens
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, list_gaps, placement_of
from app.scenes.settings import SceneSettings

HEADING = "## Running Recap"

_HEADINGS = re.compile(r"^# ", re.MULTILINE)

SEGMENT = SegmentSpec(
    "recap",
    instruction='"Running Recap" is what the scenes so far have led to: what has changed, what is still open, and how '
    "things are now.",
    leads=True,
)


_OF_RECAP = "v.chat_key = c.chat_key AND v.line_id = c.line_id AND v.layer = 'recap' AND v.subject = ''"

FORMER_RECAP = f"""
    CASE WHEN b.seq <= (c.context_cache -> 'scenes' ->> 'last_seq')::int THEN (
        WITH RECURSIVE chain AS (
            SELECT v.version, v.base_version, v.text, v.last_unit, v.origin, v.deleted_at FROM narrative_versions v
            WHERE {_OF_RECAP} AND v.version = (c.context_cache -> 'scenes' ->> 'version')::int
            UNION ALL
            SELECT v.version, v.base_version, v.text, v.last_unit, v.origin, v.deleted_at
            FROM chain JOIN narrative_versions v ON {_OF_RECAP} AND v.version = chain.base_version
            WHERE chain.last_unit >= b.seq OR chain.deleted_at IS NOT NULL
        ), former AS (
            SELECT * FROM chain
            WHERE last_unit < b.seq AND deleted_at IS NULL AND (origin = 'person' OR NOT EXISTS (
                SELECT FROM narrative_versions v
                WHERE {_OF_RECAP} AND v.source_hash <> v.current_hash AND v.origin <> 'person'
                    AND v.last_unit <= chain.last_unit))
            ORDER BY version DESC LIMIT 1
        )
        SELECT json_build_object('version', f.version, 'text', f.text, 'last_seq', coalesce(f.last_unit, 0),
            'anchor_seq', c.anchor_seq)::text
        FROM (SELECT) one LEFT JOIN former f ON true
    ) END"""  # noqa: S608 - constants only
"""A scalar subquery: the version of the running recap for a context that ends before the message with `b.seq`.

The subquery returns NULL unless the running recap covers this message. It looks at one version only: of the version in
use and the versions that this one was built on, the newest that ends before the message and is not deleted. If a person
wrote it, it is returned. If the service made it, it is returned only if it is not stale, and no other version that the
service made and that ends at the same seq or earlier is stale either.
"""


def contribute(view: View) -> Contributed:
    """Return the gaps, the edges, and the running recap, unless it is empty or the settings leave it out."""
    cached = view.cached if view.is_known(view.cached.get("last_seq", 0)) else _former(view)
    gaps = list_gaps(cached)
    edges = cached.get("edges", ())
    placement = placement_of(SceneSettings.of(view.settings).recap)
    if placement is None or not cached.get("text"):
        return Contributed(gaps=gaps, edges=edges)
    item = Item(word(cached["text"]), cached["tokens"], (source_of(cached["version"]),))
    return Contributed((Contribution("recap", (item,), placement=placement),), gaps, edges)


def _former(view: View) -> dict[str, Any]:
    """Return the cached fields for the version that `FORMER_RECAP` found, with the gap after that version, if any."""
    former = orjson.loads(view.queried)
    last_seq, text = former["last_seq"], former["text"] or ""
    gap = (last_seq + 1, former["anchor_seq"] - 1)
    return {
        "version": former["version"],
        "text": text,
        "tokens": count_tokens_shown(text),
        "gaps": [*list_gaps(view.cached), *([gap] if gap[0] <= gap[1] else [])],
        "edges": view.cached.get("edges", ()),
    }


def source_of(version: int | None) -> str:
    """Return the source that contexts list for a version of the running recap."""
    return f"recap:{version}"


def word(text: str) -> str:
    """Return the running recap under its heading, with its own headings one level below."""
    return f"{HEADING}\n\n{_HEADINGS.sub('### ', text)}"


def count_tokens_shown(text: str) -> int:
    """Count the tokens of the running recap with its heading."""
    return count_tokens(word(text))
