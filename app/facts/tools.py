"""The tools with which a character sets, reads and forgets facts."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.bindings.service import Call, Made
from app.chats.chat_lock import lock_head
from app.chats.hashes import identity
from app.chats.head import Head
from app.facts.book import KIND, NAME, list_held, say
from app.facts.keys import MAX_KEY_CHARS, choose_key
from app.facts.schemas import MAX_VALUE_CHARS, FactKey, FactValue
from app.facts.wording import word_fact
from app.kit.tokens import count_tokens
from app.knowledge.learning import LearningChat, learn, lock_scopes_of_tool
from app.knowledge.reading import Viewpoint, find_deciding, view_chat
from app.knowledge.service import Said
from app.layers.tool import Answer, PageNumber, Tool, ToolCall, read, refused, wrote
from app.layers.tool_pages import word_page

Key = Annotated[
    FactKey,
    Field(
        description="A short name of what it is about, such as `birthday` or `pets`; the same name each time. "
        f"At most {MAX_KEY_CHARS} characters, without a slash."
    ),
]

_GO_ON = "Go on with the story; do not mention the note."


class SetFact(BaseModel):
    """The arguments of `set_fact`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"key": "brother", "value": "Tomas, a ferryman"}]}
    )

    key: Key
    value: Annotated[
        FactValue,
        Field(
            description="What is true now, in a few words. It replaces the former value. "
            f"At most {MAX_VALUE_CHARS:,} characters."
        ),
    ]


class ForgetFact(BaseModel):
    """The arguments of `forget_fact`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"key": "job"}]})

    key: Key


class GetFacts(BaseModel):
    """The arguments of `get_facts`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}, {"page": 2}]})

    page: PageNumber = 1


async def _set_fact(call: ToolCall, arguments: SetFact) -> Answer:
    head = await lock_head(call.db_session, call.ref)
    view = await view_chat(call.db_session, call.ref, character=call.character)
    learning = await lock_scopes_of_tool(call.db_session, call.ref, view.character)
    key = choose_key(arguments.key, await list_held(call.db_session, view))
    made = await _teach(call, head, view, learning, SET_FACT.name, say(key, arguments.value))
    later = await _word_later(call, view, key, arguments.value, made) if made.is_retry else None
    return wrote(f"{later or f'It is noted: {key} is “{arguments.value}”.'} {_GO_ON}", made)


async def _word_later(call: ToolCall, view: Viewpoint, key: str, value: str, made: Made) -> str | None:
    """Return what the model reads if its call is a retry and something else was written about the key since.

    Return None if nothing that this chat sees was written about the key since the call `made`, or if the key has
    `value` anyway.
    """
    deciding = await find_deciding(call.db_session, view, KIND, key)
    if deciding is not None and deciding.content == value:
        return None
    coming = await find_deciding(call.db_session, view, KIND, key, with_call=made.binding_id)
    if coming is None or coming.statement_id == made.binding_id:  # its reply is still to come or is hidden
        return None
    if deciding is not None and deciding.statement_id == coming.statement_id:
        if deciding.content is None:
            how = "The user has deleted the fact {}" if deciding.origin == "person" else "The fact {} was forgotten"
            return f"{how.format(key)} since it was noted, so it is not noted again. Do not repeat the call."
        since = f"since then, {key} is “{deciding.content}”"
    else:
        since = f"a later call has changed {key}"
    again = f"To note something else about it, call `{SET_FACT.name}` with other words."
    return f"This call was made before, so it changes nothing: {since}. {again}"


async def _forget_fact(call: ToolCall, arguments: ForgetFact) -> Answer:
    head = await lock_head(call.db_session, call.ref)
    view = await view_chat(call.db_session, call.ref, character=call.character)
    learning = await lock_scopes_of_tool(call.db_session, call.ref, view.character)
    held = await list_held(call.db_session, view)
    key = choose_key(arguments.key, held)
    if key not in held:
        known = ", ".join(held) or "none"
        return refused(f"There is no fact {arguments.key!r}, so nothing has changed. The facts are: {known}.")
    made = await _teach(call, head, view, learning, FORGET_FACT.name, say(key, None))
    if made.is_retry:
        coming = await find_deciding(call.db_session, view, KIND, key, with_call=made.binding_id)
        if coming is not None and coming.content is not None:
            since = f"since then, {key} is “{coming.content}”"
            return wrote(f"This call was made before, so it changes nothing: {since}. {_GO_ON}", made)
    return wrote(f"It is forgotten: {key}. Go on with the story; do not mention it.", made)


async def _get_facts(call: ToolCall, arguments: GetFacts) -> Answer:
    view = await view_chat(call.db_session, call.ref, character=call.character)
    held = await list_held(call.db_session, view)
    if not held:
        return read("There are no facts yet.")
    lines = [word_fact(key, one.content or "") for key, one in sorted(held.items())]
    return read(word_page(None, lines, arguments.page, again="`get_facts` with page", count_tokens=count_tokens))


async def _teach(call: ToolCall, head: Head, view: Viewpoint, learning: LearningChat, tool: str, said: Said) -> Made:
    """Store what a tool writes about a fact, bound to the reply of the call. The line and the scopes are locked."""
    db_session = call.db_session
    words = identity("fact", f"{said.key}\0{said.content or ''}")
    scope = learning.choose_scope(await find_deciding(db_session, view, KIND, said.key))
    made = Call(NAME, tool, view.character or "", words, call.target)
    return await learn(db_session, head, scope, made, said, now=call.now)


SET_FACT = Tool(
    name="set_fact",
    description=(
        "Note a fact that stays true until it changes, under a short name: somebody's name, birthday, family, home or "
        "work, what they like and cannot stand, an agreement, a number to remember. Call it when you learn such a fact "
        "or when it changes. Do not call it for what happens in a scene, for moods, guesses or plans."
    ),
    arguments=SetFact,
    example={"key": "…", "value": "…"},
    run=_set_fact,
)
GET_FACTS = Tool(
    name="get_facts",
    description="Read all facts that are noted. Call it when you need one that is not in front of you.",
    arguments=GetFacts,
    example={},
    run=_get_facts,
)
FORGET_FACT = Tool(
    name="forget_fact",
    description="Forget a fact that is no longer true and has no new value. For a new value, call `set_fact`.",
    arguments=ForgetFact,
    example={"key": "…"},
    run=_forget_fact,
)
