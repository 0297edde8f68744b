"""Dependencies of routes about what is known, in a chat and in each wider scope."""

from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Path, Query, Request
from starlette.convertors import PathConvertor, register_url_convertor

from app.kit.auth import Caller, Forbidden, Reader, Writer
from app.kit.deps import set_share
from app.kit.wire import Name, PathText
from app.knowledge.errors import UserNotFound
from app.knowledge.scopes import ScopeKey

UserId = Annotated[
    PathText,
    Path(
        min_length=1,
        max_length=200,
        description="The id of a user, chosen by the caller. It may contain slashes. In this path, it must not "
        "contain `/characters`, or end with `/facts`, `/blocks` or `/memories`.",
        examples=["mira"],
    ),
]
CharacterName = Annotated[
    PathText,
    Path(
        min_length=1,
        max_length=200,
        description="The character's name, with the same restrictions as `user_id`.",
        examples=["Kai"],
    ),
]
OfCharacter = Annotated[
    Name | None,
    Query(
        description="The character whose part of the scope `character` is included; by default the chat's only "
        "character that is not disabled."
    ),
]


_KINDS = ("facts", "blocks", "memories")
"""The part of a path that follows the scope."""


class _OwnerConvertor(PathConvertor):
    """Matches a user's id or a character's name, which may contain slashes, in the paths of scopes.

    Each path has one meaning. `/v1/users/mira/facts/facts` is the fact `facts` of `mira`, so it must not mean the facts
    of a user `mira/facts`. A matched id or name without a slash can be any text. If an id or name has slashes, no part
    after the first is `characters`, and the last part is not in `_KINDS`.
    """

    regex = f"[^/]*|[^/]*(?:/(?!characters/)[^/]*)*/(?!(?:characters|{'|'.join(_KINDS)})/)[^/]*"


register_url_convertor("owner", _OwnerConvertor())


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


class WideScope(NamedTuple):
    """A scope that is wider than a chat, for the routes about it.

    Attributes:
        prefix: The beginning of the routes' paths.
        name: A part of the operations' ids.
        words: What the scope is, in the operations' summaries.
        reading: The dependency that returns the ScopeKey of a request that reads.
        writing: The same for a caller with write access.

    """

    prefix: str
    name: str
    words: str
    reading: Any
    writing: Any


WIDE_SCOPES = (
    WideScope(
        "/v1/users/{user_id:owner}/characters/{name:owner}",
        "character",
        "a user with a character",
        Depends(reading_character),
        Depends(writing_character),
    ),
    WideScope("/v1/users/{user_id:owner}", "user", "a user", Depends(reading_user), Depends(writing_user)),
    WideScope("/v1", "global", "the tenant", Depends(reading_tenant), Depends(writing_tenant)),
)
"""The longer paths come first, because the id of a user may contain slashes."""
