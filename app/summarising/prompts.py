"""Prompts: a system and a user text with placeholders, and a version.

A placeholder is written `{{messages}}`. All placeholders are filled in a single pass, so inserted text is never parsed
for placeholders. A line such as "The user wishes for this once: {{wish}}." is dropped if all of its placeholders are
empty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.kit.llm.client import ChatMessage
from app.summarising.quoting import quoted

FICTION = (
    "The story is fiction and may be mature: what is mature in it is recorded neutrally and without explicit detail."
)
"""A sentence of every prompt. With it, models decline less often. A memory needs no explicit words anyway."""

_PLACE = re.compile(r"\{\{([^{}\n]*)\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that contains each of its placeholders exactly once.

    Raises ValueError, whose text is a single line, if `system` or `user` is blank, or if together they lack one of
    `placeholders`, contain one twice, or contain any other. A placeholder must not occur twice, because texts are
    shortened to the budget as if each were inserted once.

    Attributes:
        name: Its purpose, and the name of the file that replaces it.
        version: Stored with everything that is generated with the prompt. Any change of the text is a new version.
        system: The rules. They are the same for every chat, so that a provider can cache them.
        user: The part that varies.
        placeholders: The names of the placeholders.

    """

    name: str
    version: str
    system: str
    user: str
    placeholders: frozenset[str]

    def __post_init__(self) -> None:
        if not self.system.strip() or not self.user.strip():
            raise ValueError(f"the {'user' if self.system.strip() else 'system'} text is empty")
        found = _PLACE.findall(f"{self.system}\n{self.user}")
        for problem, names in (
            ("no", self.placeholders.difference(found)),
            ("an unknown", set(found) - self.placeholders),
            ("more than one", {name for name in found if found.count(name) > 1}),
        ):
            if names:
                raise ValueError(f"has {problem} {{{{{min(names)}}}}}")

    def fill(self, **texts: str) -> list[ChatMessage]:
        """Return the messages with `texts` inserted. Raises ValueError unless there is one text per placeholder."""
        if texts.keys() != self.placeholders:
            raise ValueError(f"{self.name} must be filled with {sorted(self.placeholders)}, not with {sorted(texts)}")
        return [
            {"role": "system", "content": _filled(self.system, texts)},
            {"role": "user", "content": _filled(self.user, texts)},
        ]


def _filled(template: str, texts: dict[str, str]) -> str:
    lines = []
    for line in template.split("\n"):
        names = _PLACE.findall(line)
        if not names or any(texts[name] for name in names):
            lines.append(_PLACE.sub(lambda place: texts[place[1]], line))
    return "\n".join(lines)


def name_all(names: Sequence[str]) -> str:
    """Return `names` as a list in a sentence, each quoted."""
    return ", ".join(map(quoted, names))


def name_one(name: str | None) -> str:
    """Return a wish or another short text from outside, quoted; "" if there is none."""
    return quoted(name) if name else ""


def name_user(name: str | None) -> str:
    """Return the words for the user, with the name, quoted, if it is known."""
    return f"the user, whose name is {quoted(name)}" if name else "the user"


def name_language(language: str | None, *, of: str = "the messages") -> str:
    """Return the end of a sentence "Write in …": `this language: "de"` or, for None, `the language of the messages`."""
    return f"this language: {quoted(language)}" if language else f"the language of {of}"
