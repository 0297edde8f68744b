"""The format `transcript`: one line per message, in the form of Suzent's transcripts.

    {"ts": "2026-02-08T10:00:00Z", "role": "user", "content": "Hello?", "actions": [], "meta": {}}

`actions` are the tool calls. Stored values for which the format has no field are in `meta.memobook`: the id, the name,
swipes, metadata, marks. There is no header, so the fields of the chat are not in the file. A line may also have an
`id`, a `name` and a `seq`, as the lines of a vault's transcript do. The `seq` is ignored.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.messages.schemas import ToolCall
from app.transfer.records import (
    OTHERS,
    ChatRecord,
    Entry,
    FileHeader,
    Ids,
    Json,
    Record,
    Source,
    check_message,
    describe,
    read_others,
    without,
)
from app.transfer.send_dates import read_send_date
from app.transfer.transcript import Line

NAME = "transcript"
OURS = "memobook"

_WRITTEN = {"ts", "role", "content", "actions", "meta"}
_BESIDE = {"id", "name", "seq"}
_OURS = (
    "kind", "importance", "tool_call_id", "swipes", "selected_swipe", "metadata", "excluded", "pinned", "hidden_by",
    "hidden",
)  # fmt: skip
_CALLS = TypeAdapter(list[ToolCall])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TranscriptLines:
    """Reads and writes the lines of a file."""

    name = NAME

    def read_header(self, _line: Line) -> FileHeader | None:
        """Return None: there is no header."""
        return None

    def read_missing_header(self) -> Source:
        """Return what to store as the header of a file that has none."""
        return {}

    def read(self, line: Line, ids: Ids) -> Entry:
        """Return a line as an entry: a message or a kept line. Raises TranscriptError."""
        number, fields = line.number, line.fields
        ours, meta = _split(fields.get("meta"))
        others = read_others(ours.get(OTHERS), NAME) or {}
        if others and fields.keys() == {"meta"}:
            return Entry(number, None, others)
        calls = _read_calls(fields.get("actions"))
        if fields.get("content") == "" and not calls:
            return Entry(number, None, {NAME: fields})
        own = {name: value for name, value in fields.items() if name not in _WRITTEN | _BESIDE}
        sent_at = _read_time(fields.get("ts"))
        if "ts" in fields and (sent_at is None or fields["ts"] != _write_time(sent_at)):
            own["ts"] = fields["ts"]
        if not calls and fields.get("actions", []) != []:
            own["actions"] = fields["actions"]
        if "meta" in fields and meta != {}:
            own["meta"] = meta
        wanted = ours.get("id", fields.get("id"))
        made = f"line-{number:06}"
        given = {
            **{name: ours[name] for name in _OURS if name in ours},
            "id": wanted if isinstance(wanted, str) and ids.claim(wanted) else ids.make(made),
            "role": fields.get("role"),
            "name": ours.get("name", fields.get("name")),
            "content": fields.get("content"),
            "sent_at": sent_at,
            "tool_calls": calls,
        }
        return Entry(number, check_message(number, given), others | ({NAME: own} if own else {}))

    def write_header(self, _chat: ChatRecord, _source: Source) -> Json | None:
        """Return None: there is no header."""
        return None

    def write(self, record: Record, source: Source, number: int) -> Json:
        """Return the line of a message."""
        own = source.get(NAME) or {}
        said = describe(record)
        calls = said.pop("tool_calls", None)
        ours: Json = {} if record.message_id == f"line-{number:06}" else {"id": record.message_id}
        ours |= ({} if record.name is None else {"name": record.name}) | said | _others(source)
        meta = own.get("meta", {})
        if ours:
            meta = {**(meta if isinstance(meta, dict) else {}), OURS: ours}
        return {
            "ts": _choose_time(record.sent_at, own),
            "role": record.role,
            "content": record.content,
            "actions": calls or own.get("actions", []),
            "meta": meta,
            **{name: value for name, value in own.items() if name not in _WRITTEN},
        }

    def write_kept(self, source: Source) -> Json:
        """Return a kept line, which is no message."""
        return source.get(NAME) or {"meta": {OURS: _others(source)}}


def _read_calls(actions: Any) -> list[Json] | None:
    """Return `actions` if they are valid tool calls, at least one; else None."""
    try:
        return actions if actions and _CALLS.validate_python(actions) else None
    except ValidationError:
        return None


def _read_time(written: Any) -> datetime | None:
    """Return the time of a text that `read_send_date` accepts, or of a number of seconds since 1970; else None."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return _EPOCH + timedelta(seconds=written) if 0 < written < 1e11 else None
    return read_send_date(written) if isinstance(written, str) else None


def _choose_time(sent_at: datetime, own: Json) -> Any:
    """Return the time as the file had it, unless it has changed since."""
    return own["ts"] if "ts" in own and _read_time(own["ts"]) in (None, sent_at) else _write_time(sent_at)


def _write_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _split(meta: Any) -> tuple[Json, Any]:
    """Return what is below `OURS` in `meta`, and the rest, which is all of `meta` if it has no object there."""
    if not isinstance(meta, dict) or not isinstance(meta.get(OURS), dict):
        return {}, meta
    return meta[OURS], {name: value for name, value in meta.items() if name != OURS}


def _others(source: Source) -> Json:
    others = without(source, NAME)
    return {OTHERS: others} if others else {}
