"""The format `sillytavern`: reads and writes a chat as SillyTavern saves it.

`app/transfer/sillytavern.py` describes the format. Stored values for which the format has no field are written below
`extra.memobook` of a message and `chat_metadata.memobook` of the header. The id of a message is there only if it
differs from the id that is made from its line number.

The source of a message (`records.py`) has the fields that SillyTavern knows and the service does not, such as
`swipe_info` and `gen_started`, and values that the service would write in another way: a time, an empty name, an empty
swipe. In the source, `swipes` is the list of the file with a 1 in the place of each stored text; empty entries stay as
they were. Lines that are not messages are kept in their places: pages of SillyTavern itself (help, greetings, reports
of tools), notes, and lines without a text. A file without a header, such as that of a group chat, is
exported without one, unless a header is needed for fields of the chat.
"""

from datetime import UTC, datetime
from typing import Any

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
from app.transfer.sillytavern import is_page, order_swipes, read_extra, select_text
from app.transfer.transcript import Line, TranscriptError

NAME = "sillytavern"
OURS = "memobook"

_IN_MESSAGE = {"mes", "is_user"}
_IN_HEADER = {"user_name", "character_name", "chat_metadata"}
_IN_CARD = {"spec", "data", "first_mes", "char_name"}
_WRITTEN = {"name", "is_user", "is_system", "mes", "send_date", "extra"}
_NARRATED = ("system", "tool")
_IS_MESSAGE = "is_message"
_THEIRS = "theirs"
"""Below `OURS`: what the file itself had in the place of `OURS`."""

_PAGE: Json = {"name": "", "is_user": False, "is_system": True, "mes": ""}


class SillyTavernLines:
    """Reads and writes the lines of a file."""

    name = NAME

    def read_header(self, line: Line) -> FileHeader | None:
        """Return what the first line says of the chat, or None if it is a message.

        Raises TranscriptError if it is neither a message nor a header, as in a character card (which can have the
        field `create_date` of a header, too), a lorebook or a file of another format.
        """
        fields = line.fields
        if fields.keys() & _IN_MESSAGE:
            return None
        is_dated = "create_date" in fields and not fields.keys() & _IN_CARD
        if not (is_dated or fields.keys() & _IN_HEADER):
            raise TranscriptError(line.number, "neither a message nor the header of a SillyTavern chat")
        chat, metadata = _split(fields.get("chat_metadata"))
        others = read_others(chat.pop(OTHERS, None), NAME) or {}
        own = {**fields, "chat_metadata": metadata} if "chat_metadata" in fields else fields
        return FileHeader(chat, {**others, NAME: own})

    def read_missing_header(self) -> Source:
        """Return what to store as the header of a file that has none."""
        return {NAME: None}

    def read(self, line: Line, ids: Ids) -> Entry:
        """Return a line as an entry: a message or a kept line. Raises TranscriptError."""
        number, fields = line.number, line.fields
        ours, extra = _split(fields.get("extra"))
        others = read_others(ours.get(OTHERS), NAME) or {}
        if others and extra == {"type": OURS}:
            return Entry(number, None, others)
        if (is_page(fields) and not ours.get(_IS_MESSAGE)) or not (select_text(line) or ours.get("tool_calls")):
            return Entry(number, None, {NAME: fields})
        given, own = _read_message(line, ours)
        made = _make_id(number)
        wanted = ours.get("id", made)
        given["id"] = wanted if isinstance(wanted, str) and ids.claim(wanted) else ids.make(made)
        return Entry(number, check_message(number, given), others | ({NAME: own} if own else {}))

    def write_header(self, chat: ChatRecord, source: Source) -> Json | None:
        """Return the first line; None if the file had none and the chat needs none."""
        ours = {name: value for name, value in chat.fields.items() if name != "characters"}
        if not _are_speakers(chat):
            ours["characters"] = chat.fields.get("characters", [])
        ours |= _others(source)
        if NAME in source and source[NAME] is None:
            return {"chat_metadata": {OURS: ours}} if ours else None
        own = source.get(NAME)
        if own is None:
            names = [one["name"] for one in chat.fields.get("characters", [])] or chat.speakers
            own = {
                "user_name": chat.fields.get("user_name") or "unused",
                "character_name": names[0] if names else "unused",
                "create_date": _write_date(chat.created_at),
                "chat_metadata": {},
            }
        metadata = own.get("chat_metadata")
        return {**own, "chat_metadata": _join(metadata, ours)} if ours else own

    def write(self, record: Record, source: Source, number: int) -> Json:
        """Return the line of a message."""
        own = source.get(NAME) or {}
        is_narrated = record.role not in ("user", "assistant")
        is_system = record.hidden_by is not None or record.kind is not None
        extra = own.get("extra")
        ours = _describe(record, number, is_system=is_system) | _others(source)
        name = record.name
        if name is None and "name" in own:
            name = own["name"]
        elif name is None and record.speaker:
            name = record.speaker
            ours["name"] = None
        if is_system and not is_narrated and is_page({"is_system": True, "extra": extra}):
            ours[_IS_MESSAGE] = True
        if ours or is_narrated:
            narrated = {"type": "narrator"} if is_narrated else {}
            extra = {**_as_object(extra), **narrated}
            extra = _join(extra, ours) if ours else extra
        return {
            "name": "" if name is None and "name" not in own else name,
            "is_user": record.role == "user",
            "is_system": is_system,
            "send_date": _choose_date(record.sent_at, own),
            "mes": record.content,
            **({} if extra is None and "extra" not in own else {"extra": extra}),
            **{field: value for field, value in own.items() if field not in _WRITTEN},
            **_write_swipes(record, own.get("swipes")),
        }

    def write_kept(self, source: Source) -> Json:
        """Return a kept line, which is no message."""
        return source.get(NAME) or {**_PAGE, "extra": {"type": OURS, OURS: _others(source)}}


def _read_message(line: Line, ours: Json) -> tuple[Json, Json]:
    """Return a message in the form that append takes, without its id, and its source."""
    fields = line.fields
    extra = read_extra(fields)
    role = "user" if fields.get("is_user") else "assistant"
    if extra.get("type") == "narrator":
        role = ours["role"] if ours.get("role") in _NARRATED else "narrator"
    own = {name: value for name, value in fields.items() if name not in _WRITTEN}
    texts, index, shape = order_swipes(line)
    if shape is not None:
        del own["swipes"]
        own.pop("swipe_id", None)
        if len(texts) == 1 or not all(shape):
            own["swipes"] = shape
    name = None if "name" in ours else fields.get("name")
    if fields.get("name", "unknown") in ("", None):
        own["name"], name = name, None
    sent_at = read_send_date(fields.get("send_date"))
    if "send_date" in fields and (sent_at is None or fields["send_date"] != _write_date(sent_at)):
        own["send_date"] = fields["send_date"]
    if "extra" in fields:
        own |= _keep_extra(fields["extra"])
    hidden: Json = {"hidden_by": ours.get("hidden_by", "user")} if fields.get("is_system") else {}
    given = {
        **{field: ours[field] for field in _OURS if field in ours},
        **hidden,
        "role": role,
        "name": name,
        "content": select_text(line),
        "sent_at": sent_at,
        **({"swipes": texts, "selected_swipe": index} if len(texts) > 1 else {}),
    }
    return given, own


_OURS = ("kind", "importance", "tool_calls", "tool_call_id", "metadata", "excluded", "pinned", "hidden")


def _keep_extra(extra: Any) -> Json:
    """Return the source of `extra`: what the service does not write itself, or nothing if it writes all of it."""
    whole, (_, extra) = extra, _split(extra)
    if not isinstance(extra, dict):
        return {"extra": extra}
    left = {name: value for name, value in extra.items() if (name, value) != ("type", "narrator")}
    return {"extra": left} if left or not whole else {}


def _describe(record: Record, number: int, *, is_system: bool) -> Json:
    """Return the fields of a message that SillyTavern does not have."""
    said = describe(record)
    if not is_system or record.hidden_by == "user":
        said.pop("hidden_by", None)
    else:
        said["hidden_by"] = record.hidden_by  # None for a thought: it is not sent, but not hidden either
    for field in ("swipes", "selected_swipe"):
        said.pop(field, None)
    message_id = {} if record.message_id == _make_id(number) else {"id": record.message_id}
    return {**message_id, **({"role": record.role} if record.role in _NARRATED else {}), **said}


def _write_swipes(record: Record, shape: Any) -> Json:
    """Return `swipes` and `swipe_id`. Falsy entries of `shape` keep their places; texts that were added come last."""
    if not isinstance(shape, list):
        if len(record.swipes) > 1:
            return {"swipes": record.swipes, "swipe_id": record.selected_swipe}
        return {}
    stored = sum(bool(one) for one in shape)
    slots = [*shape, *[1] * (len(record.swipes) - stored)]
    texts = iter(enumerate(record.swipes))
    swipes: list[Any] = []
    selected = 0
    for one in slots:
        if not one:
            swipes.append(one)
        elif (found := next(texts, None)) is not None:
            index, text = found
            if index == record.selected_swipe:
                selected = len(swipes)
            swipes.append(text)
    return {"swipes": swipes, "swipe_id": selected}


def _choose_date(sent_at: datetime, own: Json) -> Any:
    """Return the time as the file had it, unless it has changed since."""
    if "send_date" in own and read_send_date(own["send_date"]) in (None, sent_at):
        return own["send_date"]
    return _write_date(sent_at)


def _write_date(at: datetime) -> str:
    written = at.astimezone(UTC).isoformat(timespec="microseconds" if at.microsecond % 1_000 else "milliseconds")
    return written.replace("+00:00", "Z")


def _split(value: Any) -> tuple[Json, Any]:
    """Return what is below `OURS` in `value`, and the rest, which is all of `value` if it has no object there."""
    if not isinstance(value, dict) or not isinstance(value.get(OURS), dict):
        return {}, value
    ours = {name: inner for name, inner in value[OURS].items() if name != _THEIRS}
    if _THEIRS in value[OURS]:
        return ours, value | {OURS: value[OURS][_THEIRS]}
    return ours, {name: inner for name, inner in value.items() if name != OURS}


def _join(value: Any, ours: Json) -> Json:
    """Return `value` with `ours` below `OURS`; what `value` has there itself is moved below `ours`."""
    fields = _as_object(value)
    theirs = {_THEIRS: fields[OURS]} if OURS in fields else {}
    return {**fields, OURS: ours | theirs}


def _as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _are_speakers(chat: ChatRecord) -> bool:
    """Return whether an import would make the same characters from the speakers of the messages."""
    characters = chat.fields.get("characters", [])
    plain = all(one.keys() <= {"id", "name"} for one in characters)
    return plain and [one["name"] for one in characters] == chat.speakers


def _others(source: Source) -> Json:
    others = without(source, NAME)
    return {OTHERS: others} if others else {}


def _make_id(number: int) -> str:
    return f"st-{number:06}"
