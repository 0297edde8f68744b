"""Reads a chat as SillyTavern saves it: a `.jsonl` file with a header line and one line per message. Pure.

    {"user_name": "Nell", "character_name": "Quill", "create_date": "…", "chat_metadata": {…}}
    {"name": "Nell", "is_user": true, "is_system": false, "send_date": "…", "mes": "Hello?"}
    {"name": "Quill", "is_user": false, "mes": "Late.", "swipes": ["Early.", "Late."], "swipe_id": 1}

- `is_system` marks lines that are not sent to the model: messages that a person hid, and the frontend's own
  pages (help, greetings, tool reports), which also have an `extra.type` or tool reports in `extra`. Those
  pages, and notes (`extra.type` "comment"), are skipped: they are not part of the conversation.
- `extra.type` "narrator" is the narrator. In a group chat every line names its speaker;
  an empty name counts as no name.
- All swipes are read, except empty ones (generations that failed). Only the text of a swipe is read, not the model's
  reasoning. `mes` is the displayed text; it replaces the selected swipe if they differ, because edits may reach only
  `mes`.
- The names in the header are unreliable (recent versions write "unused"), so those who speak as `assistant` in the
  messages become the characters.
  The header's parts of the prompt (author's note, scenario) are not imported.
"""

from dataclasses import replace
from typing import Any

from app.transfer.send_dates import read_send_date
from app.transfer.transcript import Line, Transcript, TranscriptError, build_transcript, read_lines


def read_sillytavern(text: str) -> Transcript:
    """Return the conversation in a SillyTavern chat. Raises TranscriptError.

    The id of a message is made from its line number, which is stable while the chat only grows. A time that
    cannot be parsed is left out. `messages` includes hidden messages; `hidden` lists their ids.
    """
    lines = list(read_lines(text))
    if lines and not lines[0].fields.keys() & {"mes", "is_user"}:
        del lines[0]
    spoken = [line for line in lines if not is_page(line.fields)]
    transcript = build_transcript({}, (_to_message(line) for line in spoken))
    hidden = {_make_id(line) for line in spoken if line.fields.get("is_system")}
    return replace(
        transcript,
        skipped=transcript.skipped + len(lines) - len(spoken),
        hidden=[message["id"] for message in transcript.messages if message["id"] in hidden],
    )


def is_page(fields: dict[str, Any]) -> bool:
    """Return whether a line is a note or one of the frontend's own pages."""
    extra = read_extra(fields)
    kind = extra.get("type")
    is_own = bool(fields.get("is_system")) and (kind or "tool_invocations" in extra) and kind != "narrator"
    return kind == "comment" or bool(is_own)


def _to_message(line: Line) -> Line:
    fields = line.fields
    speaker = "user" if fields.get("is_user") else "assistant"
    role = "narrator" if read_extra(fields).get("type") == "narrator" else speaker
    return Line(
        line.number,
        {
            "id": _make_id(line),
            "role": role,
            "name": None if fields.get("name") == "" else fields.get("name"),
            "content": select_text(line),
            "sent_at": read_send_date(fields.get("send_date")),
            **_swipes(line),
        },
    )


def _make_id(line: Line) -> str:
    return f"st-{line.number:06}"


def read_extra(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the field `extra` of a line; empty if it is no object."""
    extra = fields.get("extra")
    return extra if isinstance(extra, dict) else {}


def select_text(line: Line) -> str:
    """Return the displayed text: `mes`, or the selected swipe if an importer left `mes` empty."""
    text, swipes, index = line.fields.get("mes"), line.fields.get("swipes"), line.fields.get("swipe_id", 0)
    if not text and isinstance(swipes, list) and isinstance(index, int) and 0 <= index < len(swipes):
        text = text if swipes[index] is None else swipes[index]
    if not isinstance(text, str):
        raise TranscriptError(line.number, "mes: must be a string" if "mes" in line.fields else "mes: missing")
    return text


def _swipes(line: Line) -> dict[str, Any]:
    """Return `swipes` and `selected_swipe` of a message; no fields if it has no alternatives."""
    swipes, index, _ = order_swipes(line)
    return {"swipes": swipes, "selected_swipe": index} if len(swipes) > 1 else {}


def order_swipes(line: Line) -> tuple[list[Any], int, list[Any] | None]:
    """Return the texts of a message, the index of the displayed one, and the form of `swipes`.

    The displayed text replaces the swipe that `swipe_id` selects. If `swipe_id` selects none, and no swipe is the
    displayed text, the text is added at the end. The form is the list `swipes` with a 1 in place of
    each text, so that an export can put the empty entries back. It is None if the line has no swipes, or no displayed
    text.
    """
    given, index = line.fields.get("swipes"), line.fields.get("swipe_id", 0)
    text = select_text(line)
    if not isinstance(given, list) or not text:
        return [text], 0, None
    swipes: list[Any] = [*given]
    if isinstance(index, int) and 0 <= index < len(swipes):
        swipes[index] = text
    elif text in swipes:
        index = swipes.index(text)
    else:
        index = len(swipes)
        swipes.append(text)
    before = sum(not swipe for swipe in swipes[:index])
    return [swipe for swipe in swipes if swipe], index - before, [1 if swipe else swipe for swipe in swipes]
