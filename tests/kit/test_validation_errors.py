from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.chats.settings import schema
from app.kit.validation_errors import CHAT_ID_PATTERN, FieldError, error_location, is_announced, word_error
from app.kit.wire import UtcDatetime

CHAT_ID_WORDS = (
    "must have 1 to 200 characters, each a letter from A to Z, a digit or one of . _ : @ -, and must not be . or .."
)
TIME_WORDS = "must be a time with its time zone as in RFC 3339, such as 2026-05-28T18:30:00Z"


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=4, pattern=r"\S")] = "x"
    code: Annotated[str, Field(min_length=3, pattern=r"^[a-z]+$")] = "abc"
    items: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]
    pair: Annotated[list[int], Field(min_length=2)] = [1, 2]
    kind: Literal["a", "b"] = "a"
    checked: Annotated[str, AfterValidator(str), Field(min_length=2, max_length=4)] = "xx"
    number: Annotated[int, Field(ge=1)] = 1
    chat_id: Annotated[str, Field(pattern=CHAT_ID_PATTERN)] = "c"
    sent_at: UtcDatetime | None = None

    @field_validator("number")
    @classmethod
    def _not_seven(cls, number: int) -> int:
        if number == 7:
            raise FieldError(("digit",), "must not be 7")
        return number


def errors_of(**given: Any) -> list[Any]:
    with pytest.raises(ValidationError) as refused:
        Form(**given)
    return list(refused.value.errors())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": ""}, "must not be empty"),
        ({"text": " \n"}, "must not be only white space"),
        ({"text": "12345"}, "must have at most 4 characters"),
        ({"text": 5}, "must be a valid string"),
        ({"code": "ab"}, "must have at least 3 characters"),
        ({"code": "ABC"}, "must have the form ^[a-z]+$"),
        ({"items": []}, "must not be empty"),
        ({"items": [1, 2, 3]}, "must have at most 2 items"),
        ({"pair": [1]}, "must have at least 2 items"),
        ({"kind": "c"}, "must be 'a' or 'b'"),
        ({"checked": "12345"}, "must have at most 4 characters"),
        ({"checked": "1"}, "must have at least 2 characters"),
        ({"chat_id": "bad id"}, CHAT_ID_WORDS),
        ({"sent_at": "yesterday"}, TIME_WORDS),
        ({"sent_at": "2026-05-28T18:30:00"}, TIME_WORDS),
        ({"sent_at": []}, TIME_WORDS),
        ({"number": 0}, "must be greater than or equal to 1"),
        ({"number": 7}, "must not be 7"),
        ({"nmuber": 1}, "is not a known field"),
    ],
)
def test_an_error_says_what_the_value_must_be(given: dict[str, Any], words: str) -> None:
    assert [word_error(error) for error in errors_of(**given)] == [words]


def test_a_missing_field_is_required() -> None:
    assert word_error({"type": "missing", "loc": ("body", "text"), "msg": "Field required"}) == "is required"


@pytest.mark.parametrize(
    "name",
    [
        *("cards", "card", "character_card", "characterCards", "lorebooks", "lorebook", "Lorebook", "world_info"),
        *("worldInfo", "world-info", "proxy", "memory_proxy", "events", "webhooks", "webhook"),
    ],
)
def test_settings_of_what_is_to_come_get_a_hint(name: str) -> None:
    error = {"type": "extra_forbidden", "loc": ("body", "settings", name), "msg": ""}
    assert "does not have yet" in word_error(error)
    assert word_error({**error, "loc": ("body", name)}) == "is not a known field"
    assert word_error({**error, "loc": ("body", "settings", "memos", name)}) == "is not a known field"


@pytest.mark.parametrize("name", ["lore", "lorebookss", "memo", "s", "_", ""])
def test_any_other_unknown_setting_gets_no_hint(name: str) -> None:
    error = {"type": "extra_forbidden", "loc": ("body", "settings", name), "msg": ""}
    assert word_error(error) == "is not a known field"


def test_no_setting_that_exists_is_announced() -> None:
    assert not [name for name in schema().whole.model_fields if is_announced(name)]


def test_the_location_includes_the_field_that_a_validator_names() -> None:
    (error,) = errors_of(number=7)
    assert error_location(error) == ["number", "digit"]
