"""Request and response bodies of scenes."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import WORK_ID, Patch, RequestModel, Text, absent
from app.kit.work_queue import WorkItem
from app.layers.derived import EDITED, ORIGIN, REFUSALS, Origin, RefusalOut, list_refusals
from app.scenes.answer_parts import MAX_TITLE_CHARS
from app.scenes.book import Listed

MAX_RECAP_CHARS = 20_000

Title = Annotated[Text, Field(min_length=1, max_length=MAX_TITLE_CHARS, pattern=r"\S")]
RecapText = Annotated[Text, Field(min_length=1, max_length=MAX_RECAP_CHARS, pattern=r"\S")]


class SceneOut(BaseModel):
    """A scene. Most fields of the open scene are null."""

    id: UUID | None = Field(description="Its id; null for the open scene.")
    number: int = Field(description="Its number, from 1. It changes if earlier scenes are split or merged.")
    title: str | None = Field(
        description="Its title. If a person wrote the recap, a title of the service is removed once messages change."
    )
    first_seq: int = Field(description="The seq of its first message.")
    last_seq: int | None = Field(description="The seq of its last message, on which the break is.")
    first_message_id: str | None = Field(description="The id of its first message.")
    last_message_id: str | None = Field(description="The id of its last message.")
    messages: int | None = Field(description="How many messages it has; null if more than 1,000.")
    open: bool = Field(description="Whether it is the open scene.")
    recap: str | None = Field(description="Its outcomes, open threads and state; null until the recap is made.")
    stale: bool = Field(description="Whether its messages have changed since the recap was made.")
    status: Literal["pending", "ready", "empty", "failed"] | None = Field(
        description="The recap's status. `empty`: there is nothing to summarise. `failed`: `regenerate` tries again."
    )
    closed_by: Literal["person", "model", "time", "cut"] | None = Field(
        description="What set the break. `time`: a pause, if no model gave a usable answer. `cut`: a forced cut of the "
        "history."
    )
    reason: str | None = Field(description="Why it ends there, if a reason was given.")
    in_prompt: bool = Field(
        description="Whether the running recap in contexts includes this scene, unless a small `max_tokens` trims it."
    )
    origin: Origin | None = Field(description=f"{ORIGIN} `model` until there is a recap.")
    edited: bool = Field(description=EDITED)
    error: str | None = Field(description="Why the last attempt to make the recap failed.")
    attempts: int = Field(description="The number of attempts.")
    model: str | None = Field(description="The model that wrote the recap.")
    prompt_version: str | None = Field(description="The version of the prompt.")
    refusals: list[RefusalOut] = Field(description=REFUSALS)
    created_at: datetime | None = Field(description="When it was first closed.")


class BreakOut(BaseModel):
    """The scenes on both sides of a break."""

    items: list[SceneOut] = Field(description="The scene that ends with the break, and the next scene if there is one.")


class ScenePatch(Patch):
    """Changes to a scene; absent fields stay as they are."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "The lighthouse", "recap": "# Outcomes\n- Kai stayed."}]},
    )

    title: Title | None = Field(
        None, description="The new title; no model replaces it. Null removes it until the next recap sets one."
    )
    recap: RecapText = Field(
        default_factory=absent,
        description="The new recap. A generated one replaces it only after `regenerate` with `replace_edited: true`.",
    )


class RegenerateScene(RequestModel):
    """How to make a scene's recap again."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"instruction": "Mention the brass key.", "replace_edited": True}]},
    )

    instruction: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="An instruction for this recap only."
    )
    replace_edited: bool = Field(False, description="Whether to replace a person's recap.")


class RegeneratingScene(SceneOut):
    """A scene whose recap is being made again."""

    work_id: UUID = Field(description=WORK_ID)


class ScheduledOut(BaseModel):
    """Work that was scheduled."""

    layer: str = Field(description="The layer that does the work.")
    work_id: UUID = Field(description=WORK_ID)
    run_after: datetime = Field(description="When a worker may start it.")


def scene_out(listed: Listed) -> dict[str, Any]:
    """Return a scene with the fields of SceneOut."""
    common = {
        "number": listed.number,
        "first_seq": listed.first_seq,
        "messages": listed.messages,
        "first_message_id": listed.first_message_id,
        "last_message_id": listed.last_message_id,
    }
    scene, work = listed.scene, listed.work
    if scene is None:
        known = {"open": True, "stale": False, "in_prompt": False, "edited": False, "attempts": 0, "refusals": []}
        return dict.fromkeys(SceneOut.model_fields) | common | known
    failed = scene.status == "pending" and work is not None and work.failed_at is not None
    return (
        dict.fromkeys(SceneOut.model_fields)
        | common
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
            "refusals": list_refusals(scene.origin, scene.refusals),
            "created_at": scene.created_at,
        }
    )


def scheduled_out(work: WorkItem) -> dict[str, Any]:
    """Return the fields of ScheduledOut for a work item that was just scheduled."""
    return {"layer": work.layer, "work_id": work.work_id, "run_after": work.run_after}
