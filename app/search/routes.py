"""The HTTP routes of searches."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from app.chats.deps import ReadingChat
from app.kit.auth import Caller, KeyedRoute, Reader
from app.kit.deps import Now, Pool
from app.kit.wire import OrjsonResponse
from app.knowledge.deps import UserId
from app.knowledge.errors import UserNotFound
from app.search.deps import Embedders
from app.search.lookup import search_chat, search_user
from app.search.meaning import embed_query
from app.search.schemas import SearchIn, SearchOut

_TAGS: list[Any] = ["knowledge"]

router = APIRouter(tags=_TAGS, route_class=KeyedRoute)


@router.post("/v1/chats/{chat_id}/memories/search", response_model=SearchOut)
async def search_memories(
    ref: ReadingChat, body: SearchIn, pool: Pool, embedders: Embedders, clock: Now
) -> OrjsonResponse:
    """Search everything that a chat knows.

    Only what is valid on the line is found. One word of the query is enough. Words with a typo or with other accents,
    and other forms of a word if the chat has a `language`, are found too. If the server has an embedding model, texts
    are also found by their meaning.
    """
    meaning = await embed_query(embedders(ref.tenant), body.query)
    async with pool.unit_of_work(ref.tenant) as db_session:
        return OrjsonResponse(await search_chat(db_session, ref, body, meaning, now=clock()))


async def _of_user(user_id: UserId, caller: Reader) -> Caller:
    """Return the caller. Raises UserNotFound for a token that is limited to another user or to a chat."""
    if caller.chat_id is not None or caller.user_id not in (None, user_id):
        raise UserNotFound(f"There is no user {user_id!r}.")
    return caller


@router.post("/v1/users/{user_id:owner}/memories/search", response_model=SearchOut)
async def search_user_memories(
    user_id: UserId,
    caller: Annotated[Caller, Depends(_of_user)],
    body: SearchIn,
    pool: Pool,
    embedders: Embedders,
    clock: Now,
) -> OrjsonResponse:
    """Search what is known of a user, and the user's chats.

    Only the current lines of chats that have `search.across_chats` are searched. With `scene` or `line`, only the chat
    of that scene or line is searched, if it is one of these chats, and the results are those of a search in that chat,
    without the entries that a shared diary has from other chats.
    """
    meaning = await embed_query(embedders(caller.tenant), body.query)
    async with pool.unit_of_work(caller.tenant) as db_session:
        return OrjsonResponse(await search_user(db_session, caller.tenant, user_id, body, meaning, now=clock()))
