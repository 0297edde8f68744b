"""What the state machine of narratives knows beside the messages: the settings, and what it has seen of versions."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tests.conversation_model import Line, Rules
from tests.conversation_tables import Tables
from tests.talk import Json

NumberedText = tuple[str, str, int]
"""A layer, whose narrative, and a version."""


@dataclass(frozen=True)
class TellingRules(Rules):
    """The settings of a chat that narratives remember."""

    edges: str = "folds"
    summary: bool = True
    threshold: int = 4
    fold_keep: int = 3
    diary: bool = True
    lines: int = 12
    auto_write: int | None = 1
    scenes: bool = True
    detect: bool = True
    offset: int = 1
    min_scene: int = 2
    keep_scenes: int = 1
    auto_hide: int | None = 2
    exclude_latest: int = 0
    position: str = "before_prompt"

    def to_settings(self) -> Json:
        """As a request says them."""
        return {
            "memos": {"enabled": False, "include_system": self.include_system},
            "history": {
                "keep_messages": self.keep,
                "grow_messages": self.grow,
                "max_messages": self.most,
                "edges": self.edges,
                "keep_scenes": self.keep_scenes,
            },
            "summary": {
                "enabled": self.summary,
                "threshold_messages": self.threshold,
                "keep_messages": self.fold_keep,
            },
            "diary": {"enabled": self.diary, "lines": self.lines, "auto_write_turns": self.auto_write},
            "scenes": {
                "enabled": self.scenes,
                "detect": self.detect,
                "offset": self.offset,
                "min_messages": self.min_scene,
                "auto_hide": -1 if self.auto_hide is None else self.auto_hide,
                "recap": {"exclude_latest": self.exclude_latest, "position": self.position},
            },
        }


@dataclass
class TellingLine(Line):
    """A line with narratives.

    Attributes:
        rules: The settings of today; those that a step was made with are stored with it.
        texts: When each version was made that is there, by whom, and what it said.
        chosen: Whether a person has chosen or deleted a version of the recap, so that it may stay behind the scenes.

    """

    rules: TellingRules = field(default_factory=lambda: TellingRules(0, 0, 2, 2, 9, include_system=False))
    texts: dict[NumberedText, tuple[datetime, str, str]] = field(default_factory=dict)
    chosen: bool = False

    def notice(self, tables: Tables) -> None:
        """Remember what versions say; one that is there never says anything else, one that is deleted says nothing.

        A number that was cut off can be given again, also at the same time.
        """
        known, self.texts = self.texts, {}
        for one in tables.versions:
            key = (one.layer, one.subject, one.version)
            made_at, made_by, text = known.get(key, (None, None, one.text))
            if one.deleted:
                assert one.text == ""
            elif (made_at, made_by) == (one.created_at, one.origin):
                assert one.text == text
            self.texts[key] = (one.created_at, one.origin, text if one.deleted else one.text)

    def set(self, **changed: Any) -> None:
        """Other settings from now on."""
        self.rules = replace(self.rules, **changed)
