"""Learn, write and read memories: those of the chat `c` unless another path or chat is given."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx

from app.bindings.rule import hash_text
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.service import get_chat
from app.chats.settings import effective
from app.kit.clock import Clock
from app.kit.db import Database, defer
from app.kit.ids import chat_key
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Source
from app.memories.remember import NAME, LearntMemory, Remembered, remember
from app.memories.settings import MemorySettings
from tests.talk import CHAT, Json, ok, walk

TEXTS = """
    SELECT message_id, content, sent_at FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND message_id = ANY($3) ORDER BY seq"""


class Learner:
    """Learns from messages as a job of the tenant does."""

    def __init__(self, database: Database, tenant: str, clock: Clock) -> None:
        self._database = database
        self._tenant = tenant
        self._clock = clock

    async def __call__(
        self,
        content: str,
        *message_ids: str,
        **more: Any,
    ) -> Remembered:
        """Learn a sentence from messages of a chat; the other parameters are those of `learn_together`."""
        (found,) = await self.learn_together([content], *message_ids, **more)
        return found

    async def learn_together(
        self,
        contents: Sequence[str],
        *message_ids: str,
        chat_id: str = "c",
        read: str | None = None,
        at: datetime | None = None,
        **more: Any,
    ) -> list[Remembered]:
        """Learn sentences at once, each of them from the same messages of a chat.

        `read` is the text that was read of them, if not the present one, and `at` the time, if it is not now.
        """
        ref = ChatRef(self._tenant, chat_id, chat_key(self._tenant, chat_id))
        async with self._database.unit_of_work(self._tenant, ref.key) as db_session:
            chat = await get_chat(db_session, ref)
            settings = MemorySettings.of(effective(chat.settings))
            head = await lock_head(db_session, ref)
            rows = await db_session.raw.fetch(TEXTS, *head.line, list(message_ids))
            texts = {row["message_id"]: row["content"] for row in rows}
            sources = [Source(one, hash_text(texts.get(one, "") if read is None else read)) for one in message_ids]
            scope = ScopeKey.of_name(
                settings.learn_scope,
                tenant=self._tenant,
                chat_key=ref.key,
                user_id=chat.user_id,
                character="Kai",
            )
            learnt = [LearntMemory(content, sources, **more) for content in contents]
            now = self._clock()
            at = now if at is None else at
            aged_at = min([*(row["sent_at"] for row in rows[-1:]), now])
            found = await remember(
                db_session,
                head,
                scope,
                learnt,
                character="Kai",
                settings=settings,
                at=at,
                aged_at=aged_at,
                now=now,
            )
            defer(db_session, LayerChanged(head, NAME))
        return found


async def known(api: httpx.AsyncClient, chat_id: str = "c", **query: Any) -> set[str]:
    """The contents of the memories that a chat sees, in the archive or not."""
    state = ok(await api.get(f"/v1/chats/{chat_id}/state", params=query), 200)
    return {one["content"] for one in state["layers"]["memories"]}


async def memories(api: httpx.AsyncClient, *, under: str = CHAT, **query: Any) -> list[Json]:
    """All memories of a list, the strongest first."""
    return [one for page in await walk(api, f"{under}/memories", **query) for one in page]


async def listed(api: httpx.AsyncClient, *, under: str = CHAT, **query: Any) -> set[str]:
    """The contents of the memories of a list."""
    return {one["content"] for one in await memories(api, under=under, **query)}


async def history(api: httpx.AsyncClient, memory_id: object, *, under: str = CHAT, **query: Any) -> list[str | None]:
    """The texts that a memory has and had, newest first."""
    pages = await walk(api, f"{under}/memories/{memory_id}/history", **query)
    return [one["content"] for page in pages for one in page]


async def write(api: httpx.AsyncClient, content: str, *, under: str = CHAT, **given: Any) -> Json:
    return ok(await api.post(f"{under}/memories", json={"content": content, **given}), 201)


async def change(api: httpx.AsyncClient, memory_id: object, *, under: str = CHAT, **given: Any) -> Json:
    return ok(await api.patch(f"{under}/memories/{memory_id}", json=given), 200)


async def delete(api: httpx.AsyncClient, memory_id: object, *, under: str = CHAT, status: int = 204) -> None:
    answer = await api.delete(f"{under}/memories/{memory_id}")
    assert answer.status_code == status, answer.text
