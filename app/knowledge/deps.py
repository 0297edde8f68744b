"""Dependencies of routes about a scope that is wider than a chat."""

from typing import Annotated

from fastapi import Depends, Path, Request

from app.kit.auth import Caller, Forbidden, Reader, Writer
from app.kit.deps import set_share
from app.kit.wire import PathText
from app.knowledge.errors import UserNotFound
from app.knowledge.scopes import ScopeKey

UserId = Annotated[
    PathText, Path(min_length=1, max_length=200, description="The user's id, chosen by the caller.", examples=["mira"])
]
CharacterName = Annotated[
    PathText, Path(min_length=1, max_length=200, description="The character's name.", examples=["Kai"])
]


def _of_user(caller: Caller, user_id: str, character: str | None) -> ScopeKey:
    """Return the scope of a user. Raises UserNotFound for a token that is limited to another user or to a chat."""
    if caller.chat_id is not None or caller.user_id not in (None, user_id):
        raise UserNotFound(f"There is no user {user_id!r}.")
    if character is None:
        return ScopeKey.of_user(caller.tenant, user_id)
    return ScopeKey.of_character(caller.tenant, user_id, character)


def _of_tenant(caller: Caller) -> ScopeKey:
    """Return the scope of the tenant. Raises Forbidden for a token that is limited to a user or a chat."""
    if caller.chat_id is not None or caller.user_id is not None:
        raise Forbidden("This request requires a key that is not limited to a user or a chat.")
    return ScopeKey.of_tenant(caller.tenant)


async def reading_user(user_id: UserId, caller: Reader) -> ScopeKey:
    """Return the scope of the user of the path."""
    return _of_user(caller, user_id, None)


async def writing_user(request: Request, user_id: UserId, caller: Writer) -> ScopeKey:
    """Return the scope of the user of the path, for a caller with write access."""
    set_share(request, caller.tenant)
    return _of_user(caller, user_id, None)


async def reading_character(user_id: UserId, name: CharacterName, caller: Reader) -> ScopeKey:
    """Return the scope of the user and the character of the path."""
    return _of_user(caller, user_id, name)


async def writing_character(request: Request, user_id: UserId, name: CharacterName, caller: Writer) -> ScopeKey:
    """Return the scope of the user and the character of the path, for a caller with write access."""
    set_share(request, caller.tenant)
    return _of_user(caller, user_id, name)


async def reading_tenant(caller: Reader) -> ScopeKey:
    """Return the scope of the caller's tenant."""
    return _of_tenant(caller)


async def writing_tenant(request: Request, caller: Writer) -> ScopeKey:
    """Return the scope of the caller's tenant, for a caller with write access."""
    set_share(request, caller.tenant)
    return _of_tenant(caller)


ReadingUser = Annotated[ScopeKey, Depends(reading_user)]
WritingUser = Annotated[ScopeKey, Depends(writing_user)]
ReadingCharacter = Annotated[ScopeKey, Depends(reading_character)]
WritingCharacter = Annotated[ScopeKey, Depends(writing_character)]
ReadingTenant = Annotated[ScopeKey, Depends(reading_tenant)]
WritingTenant = Annotated[ScopeKey, Depends(writing_tenant)]
