"""What goes over the wire of scenes."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import MAX_SEQ, WORK_ID, Given, Patch, Text, absent
from app.kit.work_queue import WorkItem
from app.layers.derived import EDITED, ORIGIN, Origin
from app.scenes.answers import MAX_TITLE_CHARS
from app.scenes.book import Listed

MAX_RECAP_CHARS = 20_000

Title = Annotated[Text, Field(min_length=1, max_length=MAX_TITLE_CHARS, pattern=r"\S")]
RecapText = Annotated[Text, Field(min_length=1, max_length=MAX_RECAP_CHARS, pattern=r"\S")]


class SceneOut(BaseModel):
    """A scene. Of the open one, which is the last, most is still null."""

    id: UUID | None = Field(description="Its id; null for the open one.")
    number: int = Field(description="Its number in the story, from 1; it changes where scenes are parted or joined.")
    title: str | None = Field(description="What it is known by, at most 50 characters.")
    first_seq: int = Field(description="The first message.")
    last_seq: int | None = Field(description="The last message, inclusive, on which the break sits.")
    first_message_id: str | None = Field(description="The id of the first message: one step to the conversation.")
    last_message_id: str | None = Field(description="The id of the last message; of the open scene the newest.")
    messages: int | None = Field(description="How many messages it has; null if they are more than 1,000.")
    open: bool = Field(description="Whether it goes on.")
    recap: str | None = Field(
        description="Outcomes, threads and state, as far as there are any; null until it is made."
    )
    stale: bool = Field(description="Whether its messages have changed since the recap was made.")
    status: Literal["pending", "ready", "empty", "failed"] | None = Field(
        description="`empty`: nothing in it is to be told. `failed`: tried often enough; regenerate tries again."
    )
    closed_by: Literal["person", "model", "time", "cut"] | None = Field(
        description="Who set the break: `time` is a pause where there is no model, `cut` a forced one of the history."
    )
    reason: str | None = Field(description="Why it ends there, if that was said.")
    in_prompt: bool = Field(
        description="Whether a context contains a running recap that includes it, unless a small `max_tokens` trims it."
    )
    origin: Origin | None = Field(description=f"{ORIGIN} `model` until there is a recap.")
    edited: bool = Field(description=EDITED)
    error: str | None = Field(description="Why the recap could not be made yet.")
    attempts: int = Field(description="How often it was tried.")
    model: str | None = Field(description="The model that made it.")
    prompt_version: str | None = Field(description="The prompt it was made with.")
    created_at: datetime | None = Field(description="When it was closed.")


class BreakOut(BaseModel):
    """The scenes on both sides of a break."""

    items: list[SceneOut] = Field(
        description="The scene that ends with the break, and the next one, closed or open, if it has a message."
    )


class ScenePatch(Patch):
    """What to change of a scene: an absent field stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "The lighthouse", "recap": "# Outcomes\n- Kai stayed."}]},
    )

    title: Title | None = Field(
        None, description="Replaces the title; no model rewrites it. Null removes it, until the next recap brings one."
    )
    recap: RecapText = Field(
        default_factory=absent, description="Replaces the recap; no model rewrites it unless `regenerate` asks for it."
    )


class RegenerateScene(Given):
    """How to make a scene's recap again."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"instruction": "Mention the brass key.", "replace_edited": True}]},
    )

    instruction: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="A wish for this one time."
    )
    replace_edited: bool = Field(False, description="Whether a person's recap may be overwritten.")


class ChooseVersion(Given):
    """Which version of the running recap to go on with."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1}]})

    version: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="Its number.")


class RegeneratingScene(SceneOut):
    """A scene whose recap is made again."""

    work_id: UUID = Field(description=WORK_ID)


class ScheduledOut(BaseModel):
    """Work that was scheduled."""

    layer: str = Field(description="The kind of memory.")
    work_id: UUID = Field(description=WORK_ID)
    run_after: datetime = Field(description="A worker starts it no earlier.")


def scene_out(listed: Listed) -> dict[str, Any]:
    """A scene as it goes over the wire."""
    place = {
        "number": listed.number,
        "first_seq": listed.first_seq,
        "messages": listed.messages,
        "first_message_id": listed.first_message_id,
        "last_message_id": listed.last_message_id,
    }
    scene, work = listed.scene, listed.work
    if scene is None:
        known = place | {"open": True, "stale": False, "in_prompt": False, "edited": False, "attempts": 0}
        return dict.fromkeys(SceneOut.model_fields) | known
    failed = scene.status == "pending" and work is not None and work.failed_at is not None
    return (
        dict.fromkeys(SceneOut.model_fields)
        | place
        | {
            "id": scene.scene_id,
            "title": scene.title,
            "last_seq": scene.last_seq,
            "open": False,
            "recap": None if scene.status == "pending" else scene.recap,
            "stale": scene.status != "pending" and scene.source_hash != scene.current_hash,
            "status": "failed" if failed else scene.status,
            "closed_by": scene.closed_by,
            "reason": scene.reason,
            "in_prompt": listed.in_prompt,
            "origin": scene.origin,
            "edited": scene.edited,
            "error": work.error if work else None,
            "attempts": work.attempts if work else scene.attempts,
            "model": scene.model,
            "prompt_version": scene.prompt_version,
            "created_at": scene.created_at,
        }
    )


def scheduled_out(work: WorkItem) -> dict[str, Any]:
    """A work item that was just scheduled, as it goes over the wire."""
    return {"layer": work.layer, "work_id": work.work_id, "run_after": work.run_after}
