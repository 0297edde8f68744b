"""Stores what the tools of characters wrote, and what was learnt from messages.

Each value is stored as a statement (`models.py`) in a scope, with the messages that taught it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from app.bindings import service as bindings
from app.bindings.service import Call, Made
from app.chats.chat_lock import ChatRef
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.service import get_chat
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.kit.ids import tenant_key, user_key, uuid7
from app.kit.scopes import lock_scope_of
from app.knowledge.known import SCOPES, Known, choose_deciding, fold
from app.knowledge.reading import Viewpoint, list_live
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, Source, learn_by_messages, teach, teach_by_messages
from app.knowledge.settings import LearningSettings

ValueOutcome = Literal["new", "duplicate", "refused", "untaught"]
"""The outcome for a value that was learnt.

`new`: it became a new statement. `duplicate`: the key had this value already, and the statement gets the sources, too.
`refused`: nothing was stored, because it was learnt without a model and would replace a value that it must not replace.
`untaught`: nothing was stored, because the line no longer has any of the sources.
"""


@dataclass(frozen=True, slots=True)
class LearningChat:
    """A chat that learns; its user and its setting decide in which scope it stores a value.

    Attributes:
        tenant: The chat's tenant.
        chat_key: The chat's key.
        user_id: The chat's user; None if the chat has none, or if the caller sees only the chat itself.
        character: The character that the learnt values concern: the one that the call of a tool names, or else the only
            one of the chat; None if there is neither.
        settings: The chat's settings of learning.

    """

    tenant: str
    chat_key: UUID
    user_id: str | None
    character: str | None
    settings: LearningSettings

    def choose_scope(self, deciding: Known | None = None) -> ScopeKey:
        """Return the scope that the setting `learn_scope` names, but none wider than that of `deciding`.

        `deciding` is the newest live statement of the key in the nearest scope that has one. A new value in a wider
        scope would not hold, because the nearest scope wins.
        """
        rank = min(SCOPES.index(self.settings.learn_scope), deciding.rank if deciding else len(SCOPES))
        return ScopeKey.of_name(
            SCOPES[rank],
            tenant=self.tenant,
            chat_key=self.chat_key,
            user_id=self.user_id,
            character=self.character,
        )


async def lock_scopes(db_session: DbSession, learning: LearningChat, also: Iterable[UUID] = ()) -> None:
    """Lock the user and the tenant if the chat may learn in their scopes. Call it before reading what holds there.

    `also` are the keys of further users and tenants to lock. All transactions lock users before the tenant, and users
    in the order of their keys, so that two chats cannot wait for each other.
    """
    wide, tenant = set(also), tenant_key(learning.tenant)
    if learning.user_id is not None and learning.settings.learn_scope != "chat":
        wide.add(user_key(learning.tenant, learning.user_id))
        if learning.settings.learn_scope == "global":
            wide.add(tenant)
    for key in sorted(wide, key=lambda key: (key == tenant, key)):
        await lock_scope_of(db_session, key)


async def lock_scopes_of_tool(db_session: DbSession, ref: ChatRef, character: str | None) -> LearningChat:
    """Return the chat for which a tool writes, and call `lock_scopes` for it. The caller has locked the chat.

    If the caller sees only the chat, the result has no user, so that the tool writes into the scope of the chat.
    """
    chat = await get_chat(db_session, ref)
    user_id = None if ref.only_chat else chat.user_id
    learning = LearningChat(ref.tenant, ref.key, user_id, character, LearningSettings.of(effective(chat.settings)))
    await lock_scopes(db_session, learning)
    return learning


async def learn(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    call: Call,
    said: Said,
    *,
    now: datetime,
    bounded: bool = True,
) -> Made:
    """Store what a tool writes, bound to the reply that the call belongs to; return the binding.

    A retry of a call stores nothing and returns the binding of the call. `head` is the head of the chat's current line,
    which the caller has locked. With `bounded`, raises TooManyKeys if the scope has the maximum number of keys. Raises
    Invalid if the call's target cannot be a reply.
    """
    made = await bindings.bind(db_session, head, call, now=now)
    if not made.is_retry:
        await teach(db_session, head, scope, made, said, layer=call.layer, now=now, bounded=bounded)
        defer(db_session, LayerChanged(head, call.layer))
    return made


async def learn_value(
    db_session: DbSession,
    head: Head,
    learning: LearningChat,
    said: Said,
    sources: Sequence[Source],
    *,
    layer: str,
    origin: str,
    at: datetime,
    now: datetime,
    is_firm: bool = True,
) -> ValueOutcome:
    """Store a value of a key that was learnt from messages at the time `at`; return the outcome.

    If the key had the same value at that time, the messages are added to the sources of the existing statement. What a
    rule has learnt without a model (the origin `extractive`) is not stored if it would replace a value that a person
    set. Unless it `is_firm`, it is not stored either if it would replace a value of a model or a tool. `now` is the
    service's time, which is later than `at` if the messages are read again. `head` is the head of the chat's current
    line. The caller has locked this line and called `lock_scopes`. Raises TooManyKeys.
    """
    view = Viewpoint(ScopeKey.of_chat(learning.tenant, learning.chat_key), head.line, learning.character)
    live = await list_live(db_session, view, said.kind, said.key)
    scope = learning.choose_scope(choose_deciding(live, learning.character).get(said.key))
    same = (one for one in live if one.rank == scope.rank and one.character == (scope.character or None))
    former = next((one for one in same if one.learnt_at <= at), None)
    if former is not None and former.content is not None and is_same_value(former.content, said.content or ""):
        known = await teach_by_messages(db_session, head, scope, former.statement_id, sources, layer=layer, now=now)
        if known is not None:
            return "duplicate"
    if origin == "extractive":
        kept = ("person",) if is_firm else ("person", "model", "tool")
        if _replaces(kept, live, learning.character, scope, former):
            return "refused"
    is_taught = await learn_by_messages(
        db_session, head, scope, said, sources, statement_id=uuid7(), layer=layer, origin=origin, at=at, now=now
    )
    return "new" if is_taught else "untaught"


def _replaces(
    origins: Collection[str],
    live: Sequence[Known],
    character: str | None,
    scope: ScopeKey,
    former: Known | None,
) -> bool:
    """Return whether a new value of a key would hold instead of a value of one of these origins.

    `live` are the live statements of the key that the chat sees, and `character` is the character that the value
    concerns. `former` is the statement of the scope that the new value follows, if any. The new value would also hold
    instead of the present value of a wider scope, because the nearest scope decides, whichever value is newer. This is
    checked for each character.
    """
    characters = {character, *(one.character for one in live)}
    deciding = [one for named in characters for one in choose_deciding(live, named).values()]
    replaced = [former, *(one for one in deciding if one.rank > scope.rank)]
    return any(one is not None and one.origin in origins and one.content is not None for one in replaced)


def is_same_value(one: str, other: str) -> bool:
    """Return whether two values differ at most in case, white space, compatibility forms and a full stop at the end."""
    return fold(one).rstrip(".") == fold(other).rstrip(".")
