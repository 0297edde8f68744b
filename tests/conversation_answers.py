"""A model that tells of whatever it is asked by its words alone, so that what became of each word can be followed."""

import re
import zlib
from collections.abc import Callable

from tests.conversation_service import WORD, telling_memo
from tests.scripted_model import Request, Step, refuses


def tell(request: Request) -> str:
    """The answer to any prompt of the service: the former words, then the new ones, and no other."""
    content = str(request["messages"][-1]["content"])
    told = next((tell_it for mark, tell_it in _BY_MARK.items() if mark in content), None)
    return told(content) if told else telling_memo(request)


def _tell_summary(content: str) -> str:
    return f"They spoke of {_words(content, 'former', 'messages')}."


def _tell_recap(content: str) -> str:
    return f"# Outcomes\n- They spoke of {_words(content, 'former', 'scenes')}.\n# Threads\n# State"


def _tell_scene(content: str) -> str:
    return f"Title: A lamp\n# Outcomes\n- They spoke of {_words(content, 'messages')}.\n# Threads\n# State"


def _tell_diary(content: str) -> str:
    return f"I remember {_words(content, 'former', 'entries')}."


def _tell_entry(content: str) -> str:
    words = _words(content, "messages")
    return f"I said {words}." if WORD.search(words) else "NONE"


def _tell_break(content: str) -> str:
    """One of the possible breaks, or none, by what was said."""
    asked = re.search(r"Possible answers: ([\d, ]*)", content)
    breaks = [*re.findall(r"\d+", asked.group(1) if asked else ""), "null"]
    chosen = breaks[zlib.crc32(_section(content, "messages").encode()) % len(breaks)]
    return f'{{"break_at": {chosen}, "reason": "They leave."}}'


_BY_MARK: dict[str, Callable[[str], str]] = {
    "Possible answers:": _tell_break,
    "write the whole summary anew": _tell_summary,
    "write title, outcomes": _tell_scene,
    "write the whole recap anew": _tell_recap,
    "older part of your diary anew": _tell_diary,
    "write your entry": _tell_entry,
}

ANSWERS: dict[str, Step] = {
    "well": tell,
    "nothing": "NONE",
    "rubbish": "",
    "refusal": refuses(503),
}


def _words(content: str, *sections: str) -> str:
    return ", ".join(WORD.findall(" ".join(_section(content, name) for name in sections))) or "nothing"


def _section(content: str, name: str) -> str:
    found = re.search(rf"<{name}>\n(.*)\n</{name}>", content, re.S)
    return found.group(1) if found else ""
