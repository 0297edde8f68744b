"""The reference model of a line with narratives: its settings, and the versions recorded so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.oracle.reference.lines import Line, Settings
from tests.oracle.reference.tables import Tables
from tests.talk import Json

VersionKey = tuple[str, str, int]
"""A layer, the subject of the narrative, and a version."""


@dataclass(frozen=True)
class NarrativeSettings(Settings):
    """The settings of a chat with narratives and without memos."""

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

    def to_json(self) -> Json:
        """Return the settings as a request sends them."""
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
class NarrativeLine(Line):
    """A line with narratives.

    Attributes:
        settings: The current settings; a version stores the filters that it was made with.
        texts: (time, origin, kept text, text) of each stored version; the texts of a deleted version are those before
            deletion.
        recap_chosen: Whether a person has chosen or deleted a version of the recap, so that it may lag behind.
        held: The anchor at which the diaries were last seen, and what each held, by character.
        unwritten: (id, hash of the messages) of each stale entry that the model would not write again. Only a model has
            the character's voice, so such an entry stays hidden until its messages change.

    """

    settings: NarrativeSettings = field(default_factory=lambda: NarrativeSettings(0, 0, 2, 2, 9, include_system=False))
    texts: dict[VersionKey, tuple[datetime, str, str, str]] = field(default_factory=dict)
    recap_chosen: bool = False
    held: tuple[int, Mapping[str, Json]] = (0, {})
    unwritten: set[tuple[UUID, bytes | None]] = field(default_factory=set)

    def copy(self, until_seq: int | None = None) -> "NarrativeLine":
        """Return a copy. If it is truncated before the anchor, the diaries are made again at its next cut.

        That cut can lead to the same anchor as before. They are also made again if no message is left, because then no
        prompt can have been cached.
        """
        copied = super().copy(until_seq)
        assert isinstance(copied, NarrativeLine)
        if copied.anchor != self.anchor:
            copied.held = (copied.anchor, {})
        elif not copied.head:
            copied.held = (0, {})
        return copied

    def rename(self, name: str) -> None:
        """Give the character another name, which its diary and the versions of the folded part get, too."""
        former = self.character
        super().rename(name)
        self.texts = {
            (layer, name if (layer, subject) == ("diary", former) else subject, version): text
            for (layer, subject, version), text in self.texts.items()
        }
        anchor, held = self.held
        self.held = (anchor, {name if one == former else one: diary for one, diary in held.items()})

    def record_versions(self, tables: Tables) -> None:
        """Record the text of each version, and check that no text has changed and that deleted versions have none.

        A truncation frees version numbers, so another version may have the same number, even with the same time.
        """
        known, self.texts = self.texts, {}
        for one in tables.versions:
            key = (one.layer, one.subject, one.version)
            created_at, origin, kept_text, text = known.get(key, (None, None, one.kept_text, one.text))
            if one.deleted:
                assert one.whole == ""
            elif (created_at, origin) == (one.created_at, one.origin):
                assert (one.kept_text, one.text) == (kept_text, text)
            else:
                kept_text, text = one.kept_text, one.text
            self.texts[key] = (one.created_at, one.origin, kept_text, text)

    def change_settings(self, **changed: Any) -> None:
        """Change some settings."""
        self.settings = replace(self.settings, **changed)
