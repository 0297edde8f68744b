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
    """A version of the summary. If there is none: empty texts and lists, false flags, and null in other fields."""

    kept_text: str = Field(
        description="The text that a person wrote with `keep: true`, or empty. Later versions have it, too. The prompt "
        "contains it before `text`."
    )
    text: str = Field(description="The folded text, to which each fold adds new messages. May be empty.")


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
        description=f"The text; it replaces `kept_text` and `text`. At most {MAX_KEPT_CHARS:,} characters with `keep`."
    )
    keep: Annotated[bool, NullAs(True)] = Field(
        True,
        description="Whether the text becomes `kept_text`, which later versions contain word for word, or `text`, "
        "which later folds rewrite.",
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
