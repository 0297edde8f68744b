"""Ranking what a search has found."""

import asyncio
from uuid import UUID

import pytest

from app.search.queries import Texts
from app.search.service import MOST_CHARS_INLINE, Found, Searched, rank_found

LINE = Searched(UUID(int=1), UUID(int=2), 100, None, {"user": "Mira"})
FIELDS = {"category": None, "importance": None, "first_seq": 1, "last_seq": 1, "role": "user", "name": None}


@pytest.mark.parametrize("chars", [100, MOST_CHARS_INLINE])
async def test_long_texts_let_other_requests_go_on(chars: int) -> None:
    texts = {"message:a": "the lantern, " * (chars // 13), "message:b": "the lamp, " * (chars // 10)}
    rows = [FIELDS | {"source": source, "text": text, "similarity": None} for source, text in texts.items()]
    other = asyncio.create_task(asyncio.sleep(0))
    hits = await rank_found(Found(Texts(rows, 2)), LINE, ["lantern"])
    assert other.done() == (chars == MOST_CHARS_INLINE)
    assert [hit.source for hit in hits] == ["message:a"]
    await other
