"""Types of requests and responses: valid text, bounded JSON objects, time zones, fast JSON responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Self
from unicodedata import category
from uuid import UUID
from zoneinfo import available_timezones

import orjson
from fastapi import Response
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import core_schema

from app.kit.validation_errors import FieldError

MAX_METADATA_BYTES = 16 * 1024
MAX_CONTENT_CHARS = 100_000
MAX_SEQ = 2_147_483_647

WORK_ID = "The id of the scheduled work (`GET /v1/work/{work_id}`)."
"""The description of the field `work_id` in 202 responses."""

_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)

_ZONES = frozenset(available_timezones()) - {"localtime"}  # its meaning depends on the machine


def _sound(text: str) -> str:
    if "\0" in text:
        raise ValueError("may not contain the NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("may not contain lone surrogates") from error
    return text


def _fits_a_path(text: str) -> str:
    if text in (".", ".."):
        raise ValueError("must not be . or .., because clients remove these from a URL")
    return text


def _fits_a_segment(text: str) -> str:
    if "/" in text:
        raise ValueError("must not contain a slash, because it is used in the paths of URLs")
    if any(category(character) == "Cc" for character in text):
        raise ValueError("must not contain control characters")
    if not text.strip():
        raise ValueError("must not be only white space")
    return text


def _json_object(value: dict[str, Any]) -> dict[str, Any]:
    try:
        encoded = orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise ValueError("must be plain JSON, with finite numbers and valid Unicode text") from error
    if len(encoded) > MAX_METADATA_BYTES:
        raise ValueError(f"must be at most {MAX_METADATA_BYTES} bytes of JSON, is {len(encoded)}")
    if orjson.loads(encoded) != value:  # orjson writes NaN as null, a tuple as a list
        raise ValueError("must be plain JSON, with finite numbers and valid Unicode text")
    if b"\\u0000" in encoded.replace(b"\\\\", b""):  # after an escaped backslash, `u0000` is plain text
        raise ValueError("may not contain the NUL character")
    return value


STORED = {"stored": True}
"""The validation context for imported names, which may be blank: older releases accepted blank names."""


def _not_blank(text: str, info: ValidationInfo) -> str:
    if not text.strip() and info.context is not STORED:
        raise ValueError("must not be only white space")
    return text


def _known_zone(name: str) -> str:
    if name not in _ZONES:
        raise ValueError("is not a time zone of the IANA database; use a name such as Europe/Berlin")
    return name


def _in_utc(at: datetime) -> datetime:
    """Return the time in UTC. It must be a day away from the limits of datetime, so that any zone can represent it."""
    if not _EARLIEST <= at < _LATEST:
        raise ValueError("must be between 0001-01-02 and 9999-12-30 in UTC")
    return at.astimezone(UTC)


Text = Annotated[str, AfterValidator(_sound)]
PathText = Annotated[Text, AfterValidator(_fits_a_path)]
"""Text that can be a part of a URL's path, percent-encoded."""

SegmentText = Annotated[PathText, AfterValidator(_fits_a_segment)]
"""Text that can be one segment of a URL's path, percent-encoded."""

UtcDatetime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_json_object)]
TimeZone = Annotated[str, AfterValidator(_known_zone)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
NotBlank = AfterValidator(_not_blank)
"""Refuses text that is only white space, except in the context STORED."""

NOT_BLANK_SCHEMA: JsonDict = {"pattern": r"\S"}
"""The same rule in the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class NullAs:
    """Treat null as a field's default: `name: Annotated[Text, NullAs("")] = Field("")`. OpenAPI permits the null."""

    default: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Return a schema that replaces null with the default before validation."""
        schema = handler(source)
        nullable = core_schema.nullable_schema(schema)
        return core_schema.no_info_before_validator_function(self._fill, schema, json_schema_input_schema=nullable)

    def _fill(self, given: Any) -> Any:
        return self.default if given is None else given


class RequestModel(BaseModel):
    """The base of request bodies; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


def absent() -> Any:
    """Return the default of a field that may be absent but not null: `text: Text = Field(default_factory=absent)`.

    A field that was absent is not in `model_fields_set`.
    """
    return None


class Patch(RequestModel):
    """The body of a PATCH: an absent field is left unchanged; null clears a field or resets it to its default.

    A field that cannot be cleared has the default `absent`, so null is rejected there.
    """

    @model_validator(mode="after")
    def _has_a_field(self) -> Self:
        if not self.model_fields_set:
            names = list(type(self).model_fields)
            raise FieldError((names[0],), f"provide at least one of {', '.join(names)}")
        return self

    def given(self) -> dict[str, Any]:
        """Return the fields that were sent, including nulls, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class OrjsonResponse(Response):
    """A JSON response encoded by orjson. FastAPI does not validate its content."""

    media_type = "application/json"

    def render(self, content: Mapping[str, Any]) -> bytes:
        """Encode `content` as JSON: times as RFC 3339 with `Z`, UUIDs, including asyncpg's, as text."""
        return orjson.dumps(content, default=_plain, option=orjson.OPT_UTC_Z)


def _plain(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(type(value).__name__)
