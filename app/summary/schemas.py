"""Request and response models of the summary."""

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator

from app.kit.validation_errors import FieldError
from app.kit.wire import WORK_ID, NullAs, RequestModel
from app.narratives.schemas import MAX_NARRATIVE_CHARS, NarrativeText, VersionOut, version_out
from app.narratives.service import ListedVersion

MAX_KEPT_CHARS = 8_000


class SummaryOut(VersionOut):
    """A version of the summary; if there is none yet, the texts are empty, flags are false, other fields are null."""

    kept_text: str = Field(
        description="The text that a person wrote with `keep: true`; empty if there is none. Every later version "
        "contains it unchanged, and the prompt contains it before `text`."
    )
    text: str = Field(description="The folded text: each later version adds new messages to it. May be empty.")


class RegeneratingSummary(SummaryOut):
    """The version that is in use while the newest fold is made again."""

    work_id: UUID = Field(description=WORK_ID)


class SummaryIn(RequestModel):
    """A summary that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "They met at the lighthouse.", "keep": True}]},
    )

    text: NarrativeText = Field(
        description=f"The summary. It replaces `kept_text` and `text`. At most {MAX_KEPT_CHARS:,} characters if it is "
        "kept."
    )
    keep: Annotated[bool, NullAs(True)] = Field(
        True,
        description="Whether the text is kept word for word in every later version, as `kept_text`; if false, it "
        "becomes `text`, which later folds shorten and rewrite.",
    )

    @model_validator(mode="after")
    def _is_short_enough(self) -> Self:
        if self.keep and len(self.text) > MAX_KEPT_CHARS:
            raise FieldError(
                ("text",),
                f"must have at most {MAX_KEPT_CHARS} characters, or {MAX_NARRATIVE_CHARS} with keep: false",
            )
        return self


def summary_out(listed: ListedVersion | None) -> dict[str, Any]:
    """Return the JSON fields of a version; None is a summary without versions."""
    return version_out(listed) | {"kept_text": listed.version.kept_text if listed else ""}
