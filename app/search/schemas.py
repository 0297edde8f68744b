"""Request and response schemas of searches."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name, NullAs, RequestModel, Text, UtcDatetime

Kind = Literal["message", "memory", "memo", "summary", "recap", "diary", "fact"]


class SearchIn(RequestModel):
    """A search in a chat, or in the chats of a user."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "the brass key", "limit": 5, "kinds": ["message"]}]}
    )

    query: Annotated[Text, Field(min_length=1, max_length=1_000)] = Field(
        description="What to look for. One of its words is enough."
    )
    limit: Annotated[int, Field(ge=1, le=100), NullAs(10)] = Field(10, description="How many results to return.")
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=7)] | None = Field(
        None, description="Only results of these kinds; by default all. `recap` includes the recaps of scenes."
    )
    after: UtcDatetime | None = Field(
        None,
        description="Only results whose `sent_at` is after this time. Results without a `sent_at` are left out, and so "
        "are the entries that a shared diary has from other chats.",
    )
    before: UtcDatetime | None = Field(
        None,
        description="Only results whose `sent_at` is before this time. Results without a `sent_at` are left out, and "
        "so are the entries that a shared diary has from other chats.",
    )
    character: Name | None = Field(
        None,
        description="Only messages of this character, its diary, and other texts that its prompt may contain. By "
        "default those of all characters. Facts are those that `GET …/facts` lists for the same character.",
    )
    scene: UUID | None = Field(
        None,
        description="The id of a closed scene: only what is about its messages is found. A search over a user's chats "
        "then searches only the chat of the scene, the oldest one if forks have the scene, too.",
    )
    line: UUID | None = Field(
        None,
        description="The line to search; by default the current one. A search over a user's chats then searches only "
        "this line of its chat. With `scene`, the scene must be on this line.",
    )


class Parts(BaseModel):
    """What a score is made of."""

    vector: float = Field(description="How similar its meaning is: at most 0.5; 0 in the mode `text`.")
    text: float = Field(
        description="How well its words match the query, compared with the best match: at most 1. In the mode "
        "`hybrid`, at most 0.5 for a text with a vector."
    )
    importance: float = Field(description="What the importance adds, at most 0.05.")
    recency: float = Field(description="What its position in the chat adds: 0.03 at the end, less before.")
    neighbours: float = Field(
        description="For a message: a quarter of `vector` + `text` of the message before or after it, the better one."
    )


class HitOut(BaseModel):
    """A search result."""

    kind: Kind = Field(description="The kind of the text.")
    id: str = Field(
        description="Its id; of a summary or a running recap, its version; of a scene's recap, the id of the scene."
    )
    chat_id: str | None = Field(
        description="The chat in which it was found; of an entry of a shared diary, the chat in which it was "
        "written; null if found only in the user's scope."
    )
    text: str = Field(description="The whole text; of a fact, its key and its value.")
    snippet: str = Field(
        description="The part of the text that answers best, about 200 characters on one line, with the found words "
        "between `**`."
    )
    score: float = Field(description="The sum of `parts`.")
    parts: Parts = Field(description="What the score is made of.")
    sources: Sequence[str] = Field(
        description="The messages that it comes from (`message:<id>`), oldest first: for a memory only the first and "
        "the last, for a fact all, for another text at most the newest 50."
    )
    first_seq: int | None = Field(
        description="The seq of the first message that the hit is about. If it is about no message, this is the seq of "
        "the message that it follows, or null."
    )
    last_seq: int | None = Field(description="The seq of the last message that the hit is about, likewise.")
    sent_at: datetime | None = Field(
        description="When the message at `last_seq` was sent; null if it is deleted or there is none."
    )


class SearchOut(BaseModel):
    """Search results."""

    mode: Literal["hybrid", "text"] = Field(
        description="`hybrid`: words and meaning were compared. `text`: only words, because no embedding model is "
        "configured or it did not answer in time."
    )
    hits: list[HitOut] = Field(
        description="The results, best first; fewer than `limit` if their texts would exceed 4 MiB."
    )
