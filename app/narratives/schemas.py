"""Request and response models of narratives."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from app.kit.paging import make_page
from app.kit.wire import MAX_SEQ, RequestModel, Text
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, REFUSALS, Origin, RefusalOut, list_refusals
from app.narratives.service import ListedVersion

MAX_NARRATIVE_CHARS = 20_000

VersionPath = Annotated[int, Path(ge=1, le=MAX_SEQ, description="The version's number.")]
NarrativeText = Annotated[Text, Field(min_length=1, max_length=MAX_NARRATIVE_CHARS, pattern=r"\S")]


class VersionOut(BaseModel):
    """A version of a narrative. If there is none: empty texts and lists, false flags, and null in other fields."""

    version: int | None = Field(description="Its number, from 1.")
    text: str = Field(description="The whole text.")
    first_seq: int | None = Field(description="The seq of the first message it covers.")
    last_seq: int | None = Field(description="The seq of the last message it covers, inclusive.")
    stale: bool = Field(description="Whether what it was made from has changed since.")
    in_prompt: bool = Field(description=IN_PROMPT)
    edited: bool = Field(description=EDITED)
    created_at: datetime | None = Field(description="When it was generated or written.")
    current: bool = Field(
        description="Whether it is the current version. If it is stale and no person wrote it, the next fold builds "
        "on an earlier version."
    )
    origin: Origin | None = Field(description=ORIGIN)
    model: str | None = Field(description="The model that generated it.")
    prompt_version: str | None = Field(description="The version of the prompt.")
    refusals: list[RefusalOut] = Field(description=REFUSALS)


class ChooseVersion(RequestModel):
    """The version to make current."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1}]})

    version: int = Field(ge=1, le=MAX_SEQ, description="The version's number.")


class NarrativeIn(RequestModel):
    """A text that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "They met at the lighthouse and promised to come back in June."}]},
    )

    text: NarrativeText = Field(description="The text; new scenes are folded into it.")


class RegenerateNarrative(RequestModel):
    """How to make the newest fold of the summary again."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"instruction": "Keep the promise about June.", "replace_edited": True}]},
    )

    instruction: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="An instruction for this fold only."
    )
    replace_edited: bool = Field(False, description="Whether to replace a person's text.")


def versions_page(
    found: Sequence[ListedVersion], limit: int, present: Callable[[ListedVersion], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return a page of versions, newest first; `found` has one more than `limit` if there is another page.

    `present` returns the JSON fields of a version; by default it is `version_out`.
    """
    items = [(present or version_out)(one) for one in found]
    return make_page(items[:limit], [(item["version"],) for item in items])


def version_out(listed: ListedVersion | None) -> dict[str, Any]:
    """Return the JSON fields of a version whose units are message seqs; `listed` is None if there is no version."""
    if listed is None:
        names = ("version", "first_seq", "last_seq", "created_at", "origin", "model", "prompt_version")
        flags = ("stale", "in_prompt", "edited", "current")
        return dict.fromkeys(names) | dict.fromkeys(flags, False) | {"text": "", "refusals": []}
    version, is_stale, in_prompt = listed
    return {
        "version": version.version,
        "text": version.text,
        "first_seq": 1 if version.last_unit else None,
        "last_seq": version.last_unit or None,
        "stale": is_stale,
        "in_prompt": in_prompt,
        "edited": version.edited,
        "created_at": version.created_at,
        "current": version.current,
        "origin": version.origin,
        "model": version.model,
        "prompt_version": version.prompt_version,
        "refusals": list_refusals(version.origin, version.refusals),
    }
