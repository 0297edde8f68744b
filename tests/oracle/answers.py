"""Scripted model answers that repeat the words of their prompt, so that each word can be followed."""

import re
import zlib
from collections.abc import Callable

from tests.oracle.misbehaviour import SPOILINGS, WRAPPINGS, misbehaviours
from tests.oracle.service import WORD, echo_memo
from tests.scripted_model import Reply, Request, Step, refuses

DECLINES = "I'm sorry, but I can't help with that request."
"""An answer that is refused; after two of these a layer quotes the messages."""

REFUSED = ("rubbish", "misbehaving")
"""The names of the answers that are always refused."""

GOOD = ("well", "wrapped")
"""The names of the answers that repeat all words of their prompt."""

UNCERTAIN = ("spoilt",)
"""The names of the answers that are refused or accepted; those that are accepted can lack words."""


def misbehave(request: Request) -> str:
    """Return an answer that is refused. The next request names the fault, so it mostly gets another one."""
    kinds = misbehaviours(_find_prompt(request))
    number, kind = divmod(_number_of(request), len(kinds))
    return kinds[kind][number % len(kinds[kind])]


def wrap(request: Request) -> str:
    """Return the answer of `echo` in another form."""
    return WRAPPINGS[_number_of(request) % len(WRAPPINGS)](_find_prompt(request), echo(request))


def spoil(request: Request) -> str | Reply:
    """Return the answer of `echo` with a fault."""
    return SPOILINGS[_number_of(request) % len(SPOILINGS)](echo(request))


def echo(request: Request) -> str:
    """Return the answer to any prompt of the service: the words of the former text, then the new words."""
    answer = _ECHOES.get(_find_prompt(request))
    return answer(_content(request)) if answer else echo_memo(request)


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


_ECHOES: dict[str, Callable[[str], str]] = {
    "break": _choose_break,
    "summary": _echo_summary,
    "scene_recap": _echo_scene,
    "recap": _echo_recap,
    "diary": _echo_diary,
    "diary_entry": _echo_entry,
}

_MARKS = {
    "Possible answers:": "break",
    "write the whole summary anew": "summary",
    "write title, outcomes": "scene_recap",
    "write the whole recap anew": "recap",
    "older part of your diary anew": "diary",
    "write your entry": "diary_entry",
    "write the memories and facts": "consolidation",
}
"""Each prompt but that of memos, by a text that only this prompt contains."""

ANSWERS: dict[str, Step] = {
    "well": echo,
    "wrapped": wrap,
    "spoilt": spoil,
    "nothing": "NONE",
    "rubbish": DECLINES,
    "misbehaving": misbehave,
    "refusal": refuses(503),
}


def _content(request: Request) -> str:
    return str(request["messages"][-1]["content"])


def _find_prompt(request: Request) -> str:
    content = _content(request)
    return next((prompt for mark, prompt in _MARKS.items() if mark in content), "memo")


def _number_of(request: Request) -> int:
    """Return a number that depends on the request alone."""
    return zlib.crc32(_content(request).encode())


def _words(content: str, *sections: str) -> str:
    return ", ".join(WORD.findall(" ".join(_section(content, name) for name in sections))) or "nothing"


def _section(content: str, name: str) -> str:
    found = re.search(rf"<{name}>\n(.*)\n</{name}>", content, re.S)
    return found.group(1) if found else ""
