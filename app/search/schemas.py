"""Request and response schemas of searches."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name, NullAs, RequestModel, Text, UtcDatetime

Kind = Literal["message", "memory", "memo", "summary", "recap", "diary", "fact"]


class SearchIn(RequestModel):
    """A search in the chats of a user."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "the brass key", "limit": 5, "kinds": ["message"]}]}
    )

    query: Annotated[Text, Field(min_length=1, max_length=1_000)] = Field(
        description="What to look for; at most 1,000 characters. One of its words is enough."
    )
    limit: Annotated[int, Field(ge=1, le=100), NullAs(10)] = Field(
        10, description="How many results to return, 1 to 100."
    )
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=7)] | None = Field(
        None, description="Only results of these kinds; by default all. The recaps of scenes are of the kind `recap`."
    )
    after: UtcDatetime | None = Field(
        None,
        description="Only messages that were sent after this time, and texts whose newest message was sent after it. "
        "This leaves out all facts, memories that a person wrote and other texts that belong to no message of the "
        "chat, and texts whose newest message is deleted.",
    )
    before: UtcDatetime | None = Field(
        None,
        description="Only messages that were sent before this time, and texts whose newest message was sent before it. "
        "This leaves out the same texts as `after`.",
    )
    character: Name | None = Field(
        None,
        description="Only messages of this character, its diary, and those memories, memos and other texts that its "
        "prompt may contain. By default the messages of all speakers, and what any character's prompt may contain.",
    )


class ChatSearchIn(SearchIn):
    """A search in a chat."""

    scene: UUID | None = Field(None, description="The id of a closed scene: only what is about its messages is found.")
    line: UUID | None = Field(None, description="The line to search; by default the current one.")


class Parts(BaseModel):
    """What a score is made of."""

    vector: float = Field(description="How similar the meaning of the text is: at most 0.5, and 0 in the mode `text`.")
    text: float = Field(
        description="How well the words match those of the query. In the mode `text`, the best match gets 1. In the "
        "mode `hybrid`, a text with a vector gets at most 0.5. A text that has no vector yet gets at most 1, depending "
        "on how many words of the query it has."
    )
    importance: float = Field(description="What the importance adds, at most 0.05.")
    recency: float = Field(description="What its position in the chat adds: 0.03 at the end, less before.")
    neighbours: float = Field(
        description="Of a message: what the message before or after it adds, whichever is better; at most 0.25."
    )


class HitOut(BaseModel):
    """A search result."""

    kind: Kind = Field(description="The kind of the text.")
    id: str = Field(
        description="Its id; of a summary or a running recap, its version; of a scene's recap, the id of the scene."
    )
    chat_id: str | None = Field(description="The chat in which it was found; null if found only in the user's scope.")
    text: str = Field(description="The whole text; of a fact, its key and its value.")
    snippet: str = Field(
        description="The part of the text that answers best, about 200 characters on one line. Words that were found "
        "are between `**`."
    )
    score: float = Field(description="The sum of `parts`.")
    parts: Parts = Field(description="What the score is made of.")
    sources: Sequence[str] = Field(
        description="The messages it comes from (`message:<id>`), oldest first: for a memory, the first and the last "
        "of them; for a fact, all of them; for any other text, the newest of them, at most 50. Empty "
        "if it comes from no message of the chat, like a memo or a diary entry that a person wrote."
    )
    first_seq: int | None = Field(
        description="The seq of the first message that it is about. A memo or diary entry that is about no message has "
        "the seq of the message before it. Null if there is none."
    )
    last_seq: int | None = Field(description="The seq of the last message that it is about, likewise.")
    sent_at: datetime | None = Field(description="When the message at `last_seq` was sent; null if it is deleted.")


class SearchOut(BaseModel):
    """Search results."""

    mode: Literal["hybrid", "text"] = Field(
        description="`hybrid`: words and meaning were compared. `text`: only words were "
        "compared, because no embedding model is configured, or it did not answer in time (by default, within 300 ms)."
    )
    hits: list[HitOut] = Field(
        description="The results, best first. Fewer than the limit if their texts would exceed 4 MiB."
    )
