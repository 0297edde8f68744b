"""The reference of what people decided about the memories of a chat.

A text that a person wrote holds on all lines of the chat. What a person forgot, replaced or put into the archive is
compared only on the line on which it happened: on others, the word can have been learnt as another memory.
"""

from collections.abc import Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.service import WORD
from tests.talk import Json


@dataclass
class Decided:
    """What was decided on a line.

    Attributes:
        gone: The words of texts that were forgotten or replaced.
        archived: The words of memories in the archive, each with whether the memory was of a wider scope.

    """

    gone: set[str] = field(default_factory=set)
    archived: dict[str, bool] = field(default_factory=dict)


@dataclass
class Decisions:
    """What was decided in a chat.

    Attributes:
        kept: The words of the texts that people wrote.
        fields: The fields that people set, by the memory's id.
        by_line: What was decided on each line, by its id.

    """

    kept: set[str] = field(default_factory=set)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_line: dict[str, Decided] = field(default_factory=dict)

    def on(self, line_id: str) -> Decided:
        return self.by_line.setdefault(line_id, Decided())

    def fork(self, line_id: str, forked_id: str) -> "Decisions":
        """Return the decisions of a fork of the line, which has the line `forked_id`."""
        return Decisions(set(self.kept), deepcopy(self.fields), {forked_id: deepcopy(self.on(line_id))})

    def lose(self, line_id: str, word: str) -> None:
        """Apply that the text of a memory was forgotten or replaced."""
        self.on(line_id).gone.add(word)
        self.on(line_id).archived.pop(word, None)
        self.kept.discard(word)

    def set_fields(self, line_id: str, word: str, item: Json, given: dict[str, Any]) -> None:
        """Apply that a person set fields of a memory. One of a wider scope gets a text in the chat, which is kept."""
        is_wide = item["scope"] != "chat"
        if is_wide:
            self.kept.add(word)
        self.fields.setdefault(item["id"], {}).update(given)
        archived = self.on(line_id).archived
        if given.get("archived"):
            archived[word] = is_wide
        elif "archived" in given:
            archived.pop(word, None)

    def check(self, line_id: str, items: Sequence[Json], said: Set[str]) -> None:
        """Check the memories that are listed on a line, those of the archive included.

        `said` are the words of the messages. A memory whose message is gone can be learnt again, out of the archive.
        """
        decided = self.on(line_id)
        for word in set(decided.archived) - said - self.kept:
            del decided.archived[word]
        for item in items:
            words = set(WORD.findall(item["content"]))
            assert words <= said | self.kept
            assert not words & (decided.gone - self.kept)
            if not item["archived"]:
                kept_in = {word for word, is_wide in decided.archived.items() if is_wide or item["scope"] == "chat"}
                assert not words & kept_in
            given = self.fields.get(item["id"], {})
            assert {name: item[name] for name in given} == given
