"""What a model is asked: a system and a user text with places for what differs, and a version.

A place is written `{{messages}}`. All are filled in a single pass, so what is filled in is never read as a place.
A line whose places are all filled with nothing is left out: "The user wishes for this once: {{wish}}." without a wish.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.kit.llm import ChatMessage
from app.summarising.quoting import quoted

_PLACE = re.compile(r"\{\{([^{}\n]*)\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that has exactly the places it should have.

    Raises ValueError, in one line, where `system` and `user` together lack one of `placeholders`, have one twice
    (it would cost twice what it was fitted to), or have another.

    Attributes:
        name: What it is for, and the name of the file that replaces it.
        version: Stored with everything that is made with it. A change of any word is a new version.
        system: The rules, the same for every chat, so that a provider can cache them.
        user: What differs.
        placeholders: The names of its places.

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
        """Put `texts` into the places. Raises ValueError unless there is exactly one for each."""
        if texts.keys() != self.placeholders:
            raise ValueError(f"{self.name} is filled with {sorted(self.placeholders)}, not with {sorted(texts)}")
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
    """`names` for a place in a sentence, each quoted."""
    return ", ".join(map(quoted, names))


def name_one(name: str | None) -> str:
    """A name, a wish or another short text from outside for a place in a sentence, quoted; nothing if there is none."""
    return quoted(name) if name else ""


def name_language(language: str | None, *, of: str = "the messages") -> str:
    """What follows "Write in": `language` (a name or a tag) quoted, else the language of what is quoted."""
    return f"this language: {quoted(language)}" if language else f"the language of {of}"
