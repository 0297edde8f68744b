"""Checks the values of a vault's rows, before PostgreSQL reads them.

A column has the type that its column in PostgreSQL has, and numbers are at least 0. `_FORMS` has the columns that are
checked more closely: JSON, which PostgreSQL stores whatever it contains, and texts that the API limits.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from sqlalchemy import ARRAY, Boolean, Column, DateTime, Float, Integer, LargeBinary, Uuid
from sqlalchemy import Table as CoreTable
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import String, TypeEngine

from app.bindings.service import CURSOR as BINDINGS
from app.chats.characters import find_sole, list_disabled, map_renamed
from app.chats.head import CutReason
from app.chats.prompt_cache import CURSOR as PAUSES
from app.chats.prompt_cache import LONGEST_S, MOST_PAUSES
from app.chats.settings import check_overrides
from app.history.anchor import CURSOR as CUT
from app.kit.validation_errors import error_location, word_error
from app.kit.wire import MAX_CONTENT_CHARS, JsonObject, Name, Text
from app.kit.work_queue import WorkItem
from app.knowledge.service import CURSOR as KNOWLEDGE
from app.layers.layer import Layer
from app.layers.stored_forms import StoredFilters, StoredRefusal
from app.layers.stored_json import IsoTime, Number, StoredJson, UuidText
from app.memos.stored_forms import SortKey, StoredHighlight

Fields = Mapping[str, Any]
Check = Callable[[Fields], str | None]
"""Returns what is wrong with a row, or None: the name of the field and the problem, without a full stop."""


class _Cut(StoredJson):
    """`CutCursor` of `app/history/cut.py`, if a cut at the break of a session waits."""

    recheck: Number | None
    session: Number | None


class _LastCut(StoredJson):
    at_seq: Number
    reason: CutReason
    at: IsoTime


_Pause = Annotated[int, Field(ge=0, le=LONGEST_S)]


class _Pauses(StoredJson):
    seen_s: Annotated[list[_Pause], Field(max_length=MOST_PAUSES)] = Field(default_factory=list)
    open_s: _Pause = 0


class _Open(StoredJson):
    open: Number


class _Taught(StoredJson):
    by_messages: bool = False


class _Function(StoredJson):
    name: Text
    arguments: Text


class _Call(StoredJson):
    id: Text
    type: Literal["function"]
    function: _Function


_CURSORS: Mapping[str, Any] = {CUT: Number | _Cut, PAUSES: _Pauses, BINDINGS: _Open, KNOWLEDGE: _Taught}
"""The cursors that belong to no layer."""


def _is_sources(text: str) -> str:
    sources = orjson.loads(text)
    if not isinstance(sources, dict) or not all(one is None or isinstance(one, dict) for one in sources.values()):
        raise ValueError("must be a JSON object of JSON objects")
    return text


_Content = Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)]

_FORMS: Mapping[tuple[str, str], Any] = {
    ("chats", "last_cut"): _LastCut,
    ("messages", "message_id"): Annotated[Text, Field(min_length=1, max_length=128)],
    ("messages", "name"): Name,
    ("messages", "content"): _Content,
    ("messages", "tool_calls"): Annotated[list[_Call], Field(min_length=1)],
    ("messages", "tool_call_id"): Annotated[Text, Field(min_length=1, max_length=200)],
    ("messages", "metadata"): JsonObject,
    ("memos", "highlights"): list[StoredHighlight],
    ("memos", "sort_key"): SortKey,
    ("source_lines", "seq"): Number,
    ("source_lines", "source"): Annotated[str, AfterValidator(_is_sources)],
    ("swipes", "content"): _Content,
}
_BY_NAME: Mapping[str, Any] = {
    "filters": StoredFilters,
    "importance": Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)],
    "refusals": list[StoredRefusal],
    "seq": Annotated[Number, Field(ge=1)],
}
_CHECKED_APART = {"settings", "metadata", "characters", "cursors", "context_cache"}
"""The JSON columns of `chats` that are checked by functions of their own."""


_TYPES: Sequence[tuple[type[TypeEngine[Any]], Any]] = (
    (Uuid, UuidText),
    (Boolean, bool),
    (Integer, Number),
    (Float, Annotated[float, Field(allow_inf_nan=False)]),
    (DateTime, str),  # `restore.py` checks times
    (LargeBinary, Annotated[str, Field(pattern=r"^\\x([0-9a-f]{2})*$")]),
    (String, Text),
    (JSONB, Any),
)


def _type_of(kind: TypeEngine[Any]) -> Any:
    if isinstance(kind, ARRAY):
        item: Any = _type_of(kind.item_type)
        return list[item]
    return next(form for known, form in _TYPES if isinstance(kind, known))


def _form_of(table: CoreTable, column: Column[Any]) -> Any:
    name = str(column.name)
    form = _FORMS.get((table.name, name)) or _BY_NAME.get(name) or _type_of(column.type)
    is_needed = not column.nullable and column.server_default is None
    return (form if not column.nullable else form | None, Field(... if is_needed else None))


def make_check(table: CoreTable, columns: Sequence[str]) -> Check:
    """Return the check of the rows of a table; it ignores fields that are not in `columns`."""
    forms: dict[str, Any] = {
        name: _form_of(table, table.c[name])
        for name in columns
        if name in table.c and not (table.name == "chats" and name in {*_CHECKED_APART, "user_id"})
    }
    config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())
    model = create_model(f"{table.name}_row", __config__=config, **forms)
    is_message = table.name == "messages"
    return lambda fields: _find_problem(model, fields) or (_find_empty(fields) if is_message else None)


def _find_problem(model: type[BaseModel], fields: Fields) -> str | None:
    try:
        model.model_validate(fields)
    except ValidationError as error:
        return _word(error)
    return None


def _word(error: ValidationError, *above: str) -> str:
    first = error.errors(include_url=False)[0]
    location = ".".join(str(part) for part in (*above, *error_location(first)))
    return f"{location}: {word_error(first)}" if location else word_error(first)


def _find_empty(fields: Fields) -> str | None:
    if fields.get("content") or fields.get("tool_calls") or fields.get("deleted_at"):
        return None
    return "content: may be empty only when tool_calls is set"


def find_invalid_settings(settings: Fields) -> str | None:
    """Return what is wrong with the settings of a line; settings that this version does not know are no error."""
    try:
        check_overrides(settings)
    except ValidationError as error:
        known = [
            one for one in error.errors(include_url=False, include_input=False) if one["type"] != "extra_forbidden"
        ]
        if known:
            location = ".".join(str(part) for part in ("settings", *error_location(known[0])))
            return f"{location}: {word_error(known[0])}"
    return None


def find_invalid_characters(characters: Any) -> str | None:
    """Return what is wrong with the fields of stored characters that a request does not have."""
    try:
        find_sole(characters)
        list_disabled(characters)
        map_renamed(characters)
    except (LookupError, TypeError, AttributeError):
        return "characters: must be a list of characters"
    if any(not isinstance(one.get("hashed_name", ""), str) for one in characters):
        return "characters: hashed_name must be a text"
    return None


def map_layers(layers: Sequence[Layer]) -> Mapping[str, Set[str]]:
    """Return the names that the column `layer` can have in each table: those of the layers whose rows it contains."""
    names = defaultdict[str, set[str]](set)
    names[WorkItem.__tablename__] = {layer.name for layer in layers if layer.planned}
    for layer in layers:
        for model in layer.models:
            names[model.__tablename__] |= {layer.name, *layer.also_known_as}
    return dict(names)


class StateForms:
    """The forms of the JSON that the layers store on the row of a line."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        cursors = {**_CURSORS} | {layer.name: layer.cursor for layer in layers if layer.cursor is not None}
        cached = {layer.name: layer.cached for layer in layers if layer.cached is not None}
        self._planned = {layer.name: layer.planned for layer in layers if layer.planned}
        self._forms = {
            column: {name: TypeAdapter(form) for name, form in forms.items()}
            for column, forms in (("cursors", cursors), ("context_cache", cached))
        }

    def find_problem(self, fields: Fields) -> str | None:
        """Return what is wrong with `cursors` or `context_cache` of a line."""
        for column, forms in self._forms.items():
            for name, value in fields.get(column, {}).items():
                if name not in forms:
                    return f"{column}.{name}: no vault contains this"
                try:
                    forms[name].validate_python(value)
                except ValidationError as error:
                    return _word(error, column, name)
        return None

    def find_problem_of_work(self, fields: Fields, head_seq: int) -> str | None:
        """Return what is wrong with a work item of a layer with `planned`, on a line that ends with `head_seq`."""
        form = self._planned[fields["layer"]]
        try:
            item = form.model_validate({name: fields.get(name) for name in form.model_fields})
        except ValidationError as error:
            return _word(error)
        return (
            f"payload.last_seq: is above the line's head_seq, {head_seq}" if item.payload.last_seq > head_seq else None
        )
