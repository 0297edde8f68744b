"""Scripted model answers that repeat the words of their prompt, so that each word can be followed."""

import re
import zlib
from collections.abc import Callable

from tests.oracle.service import WORD, echo_memo
from tests.scripted_model import Request, Step, refuses

DECLINES = "I'm sorry, but I can't help with that request."
"""An answer that is refused; after two of these a layer quotes the messages."""

REFUSED = ("rubbish", "misbehaving")
"""The names of the answers that are always refused."""


MISBEHAVIOURS = (
    '*She takes your hand.* "Then stay with me tonight," I say, and you let me hold you until the rain has passed.',
    "They spoke of the sea and of it all. They spoke of the sea and of it all. They spoke of the sea and of it all.",
    "Mira: *looks up slowly* You came back.\nKai: Of course. Did you doubt it?",
    "It seems that the messages are missing. Could you please provide the messages to summarize?",
)
"""Answers that are refused for different faults: a story, a repeated line, a script, a request for material."""


def misbehave(request: Request) -> str:
    """Return one of the misbehaviours. The next request names the fault, so it mostly gets another one."""
    content = str(request["messages"][-1]["content"])
    return MISBEHAVIOURS[zlib.crc32(content.encode()) % len(MISBEHAVIOURS)]


def echo(request: Request) -> str:
    """Return the answer to any prompt of the service: the words of the former text, then the new words."""
    content = str(request["messages"][-1]["content"])
    answer = next((answer for mark, answer in _BY_MARK.items() if mark in content), None)
    return answer(content) if answer else echo_memo(request)


def _echo_summary(content: str) -> str:
    return f"They spoke of {_words(content, 'former', 'messages')}."


def _echo_recap(content: str) -> str:
    return f"# Outcomes\n- They spoke of {_words(content, 'former', 'scenes')}.\n# Threads\n# State"


def _echo_scene(content: str) -> str:
    return f"Title: A lamp\n# Outcomes\n- They spoke of {_words(content, 'messages')}.\n# Threads\n# State"


def _echo_diary(content: str) -> str:
    return f"I remember {_words(content, 'former', 'entries')}."


def _echo_entry(content: str) -> str:
    words = _words(content, "messages")
    return f"I said {words}." if WORD.search(words) else "NONE"


def _choose_break(content: str) -> str:
    """Return one of the possible breaks or none; the choice depends on the messages alone."""
    possible = re.search(r"Possible answers: ([\d, ]*)", content)
    breaks = [*re.findall(r"\d+", possible.group(1) if possible else ""), "null"]
    chosen = breaks[zlib.crc32(_section(content, "messages").encode()) % len(breaks)]
    return f'{{"break_at": {chosen}, "reason": "They leave."}}'


_BY_MARK: dict[str, Callable[[str], str]] = {
    "Possible answers:": _choose_break,
    "write the whole summary anew": _echo_summary,
    "write title, outcomes": _echo_scene,
    "write the whole recap anew": _echo_recap,
    "older part of your diary anew": _echo_diary,
    "write your entry": _echo_entry,
}
"""The answer to each kind of prompt, by a text that only this prompt contains."""

ANSWERS: dict[str, Step] = {
    "well": echo,
    "nothing": "NONE",
    "rubbish": DECLINES,
    "misbehaving": misbehave,
    "refusal": refuses(503),
}


def _words(content: str, *sections: str) -> str:
    return ", ".join(WORD.findall(" ".join(_section(content, name) for name in sections))) or "nothing"


def _section(content: str, name: str) -> str:
    found = re.search(rf"<{name}>\n(.*)\n</{name}>", content, re.S)
    return found.group(1) if found else ""
