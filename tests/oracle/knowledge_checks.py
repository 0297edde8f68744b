"""Comparison of what chats and scopes know with the reference."""

from dataclasses import dataclass, field
from typing import Any

from tests.oracle.reference.knowledge import (
    BLOCK,
    CHARACTER,
    FACT,
    USER,
    Knowledge,
    Lines,
    Said,
    Viewer,
    sources_of,
)
from tests.oracle.service import Service
from tests.talk import Json, ok

PATHS = {"character": f"/users/{USER}/characters/{CHARACTER}", "user": f"/users/{USER}"}
"""The paths of the wide scopes."""


@dataclass
class KnowledgeService(Service):
    """A service whose contexts are compared with the reference, also those of checkpoints and abandoned lines.

    Attributes:
        known: The tag and the body of each context that was read, by the chat's id and the query.

    """

    known: dict[tuple[str, str], tuple[str, Json]] = field(default_factory=dict)

    def contexts(self, chat_id: str, **query: Any) -> dict[str, Json]:
        """Return nothing: what other chats teach changes the contexts of lines that are not current."""
        return {}

    def read_prompt(self, chat_id: str, **query: str) -> tuple[list[str], dict[str, str]]:
        """Return the lines of the facts and the texts of the blocks in a context.

        The request names the tag of the last one, so a context that changed and kept its tag is found as well.
        """
        key = (chat_id, str(query))
        tag, body = self.known.get(key, ("", {}))
        headers = {"If-None-Match": tag} if tag else {}
        answer = self.run(self.api.get(f"/v1/chats/{chat_id}/context", params=query, headers=headers))
        if answer.status_code != 304:
            body = ok(answer, 200)
            self.known[key] = (answer.headers.get("ETag", ""), body)
        texts = {segment["name"]: segment["text"] for segment in body["segments"]}
        facts = [one.removeprefix("- ") for one in texts.get("facts", "").splitlines() if one.startswith("- ")]
        blocks = [part.partition("\n\n") for part in texts.get("blocks", "").split("### ")[1:]]
        return facts, {label: text.strip("\n") for label, _, text in blocks}


def check_prompt(service: KnowledgeService, knowledge: Knowledge, chat_id: str, lines: Lines, **query: str) -> None:
    """Check the facts, the oldest first, and the blocks in the context of a chat."""
    viewer = Viewer(chat_id)
    held = sorted(knowledge.facts(viewer, lines).values(), key=lambda one: one.at)
    blocks = {label: text for label, text in knowledge.blocks(viewer, lines).items() if text.strip()}
    facts = [f"{one.key}: {one.content}" for one in held]
    assert service.read_prompt(chat_id, **query) == (facts, blocks)


def check_chat(service: KnowledgeService, knowledge: Knowledge, chat_id: str, lines: Lines, **query: str) -> None:
    """Check what the API lists of a chat: its facts, with their scopes, origins and sources, and its blocks."""
    viewer, line = Viewer(chat_id), lines[chat_id]
    listed = service.request("GET", f"/chats/{chat_id}/facts", 200, limit=500, **query)["items"]
    held = knowledge.facts(viewer, lines)
    assert [(*_fact(item), item["sources"]) for item in listed] == [
        (*_expected(held[key]), sources_of(held[key], line)) for key in sorted(held)
    ]
    listed = service.request("GET", f"/chats/{chat_id}/blocks", 200, limit=500, **query)["items"]
    assert {item["label"]: (item["text"], item["scope"]) for item in listed} == {
        label: (text, _scope(knowledge, label, viewer, lines))
        for label, text in knowledge.blocks(viewer, lines).items()
    }


def check_scopes(service: KnowledgeService, knowledge: Knowledge, lines: Lines) -> None:
    """Check the facts and blocks of each wide scope."""
    for scope, path in PATHS.items():
        viewer = Viewer.of(scope, "")
        listed = service.request("GET", f"{path}/facts", 200, limit=500)["items"]
        held = knowledge.facts(viewer, lines)
        assert [_fact(item) for item in listed] == [_expected(held[key]) for key in sorted(held)]
        listed = service.request("GET", f"{path}/blocks", 200, limit=500)["items"]
        assert {item["label"]: item["text"] for item in listed} == knowledge.blocks(viewer, lines)


def check_histories(service: KnowledgeService, knowledge: Knowledge, chat_id: str, lines: Lines) -> None:
    """Check the values that each fact of a chat has and had, and the operations on its blocks."""
    viewer = Viewer(chat_id)
    for kind, name in ((FACT, "facts"), (BLOCK, "blocks")):
        for key in sorted({one.key for one in knowledge.live(kind, viewer, lines)}):
            listed = service.request("GET", f"/chats/{chat_id}/{name}/{key}/history", 200, limit=500)["items"]
            content = "value" if kind == FACT else "content"
            assert [(item[content], item["scope"], item["origin"]) for item in listed] == [
                (one.content, one.scope, one.origin) for one in knowledge.history(kind, key, viewer, lines)
            ]


def _fact(item: Json) -> tuple[str, ...]:
    return item["key"], item["value"], item["scope"], item["character"], item["origin"]


def _expected(held: Said) -> tuple[str | None, ...]:
    return held.key, held.content, held.scope, CHARACTER if held.scope == "character" else None, held.origin


def _scope(knowledge: Knowledge, label: str, viewer: Viewer, lines: Lines) -> str:
    deciding = knowledge.deciding(BLOCK, label, viewer, lines)
    assert deciding
    return deciding.scope
