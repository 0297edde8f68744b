"""The state machine for chats that learn from their messages, each of which is a memory while its text stays."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from app.consolidation.answers import MAX_ITEMS
from app.consolidation.generation import FULL_ITEMS, LEAST_DIVIDED_MESSAGES
from app.kit.ids import chat_key
from app.search.known import MAX_LIKELY
from tests.oracle.answers import ANSWERS, misbehave
from tests.oracle.chat_machine import ChatMachine, kind_lists, picks
from tests.oracle.driver import Chat
from tests.oracle.reference.decisions import Decisions
from tests.oracle.reference.lines import NAMES, Line, Message, Settings
from tests.oracle.reference.reimport import Wanted
from tests.oracle.service import WORD, Service, Snapshot
from tests.scripted_model import Request, Step, refuses
from tests.talk import Json

USERS = ("mira", "nell")
TOPICS = 2
"""How many memories have several versions."""

MOST_RECALLED = 20
"""How many words a query has at most."""

FIELDS: Mapping[str, Json] = {
    "archive": {"archived": True},
    "bring back": {"archived": False},
    "pin": {"pinned": True},
    "demote": {"importance": 0.2, "tags": ["mine"]},
}
"""Fields of a memory that a person sets."""

_OPEN_SEQ = """
    SELECT (cursors #>> '{consolidation,period,first_seq}')::int FROM chats
    WHERE chat_key = $1 AND line_status = 'current'"""


def learn(request: Request) -> str:
    """Return a memory of each message, with its unique word, or NONE; as a real model, no more than it is asked for.

    About few messages it returns more than that, because the answer about them is the last one.
    """
    content = str(request["messages"][-1]["content"])
    found = re.search(r"^<messages>\n(.*?)\n</messages>$", content, re.M | re.S)
    said = [json.loads(line)["message"] for line in found[1].splitlines() if line] if found else []
    lines = [
        json.dumps({"memory": word_memory(word), "importance": 0.7, "from": [number]})
        for number, text in enumerate(said, start=1)
        for word in WORD.findall(text)
    ]
    most = FULL_ITEMS if len(said) >= LEAST_DIVIDED_MESSAGES else MAX_ITEMS
    return "\n".join(lines[:most]) or "NONE"


def learn_at_the_second_try(request: Request) -> str:
    """Misbehave, and answer well once the request names the fault.

    So what is learnt is known exactly: after two or three refused answers, the range would be quoted. A long range is
    asked about in parts, and the answers about all of them count together, so the model misbehaves only about ranges
    that are shorter than such a part.
    """
    content = str(request["messages"][-1]["content"])
    is_short = content.partition("<messages>")[2].count('"number"') < LEAST_DIVIDED_MESSAGES // 2
    return misbehave(request) if is_short and "was refused" not in content else learn(request)


def word_memory(word: str) -> str:
    """Return a memory that is similar to no other one, except to those of the same topic, which are versions of it."""
    topic = find_topic(word)
    if topic is None:
        return f"{word} {hashlib.sha256(word.encode()).hexdigest()[:24]}"
    digest = hashlib.sha256(f"topic {topic}".encode()).hexdigest()
    return f"{word} {' '.join(re.findall('.{16}', digest))}"


def find_topic(word: str) -> int | None:
    """Return which of the topics the memory of a word is about; None for the words that have a memory of their own."""
    number = int(word[1:-1])
    return number // 3 % TOPICS if word[0] == "w" and number % 3 == 0 else None


LEARNT: Mapping[str, Step] = dict.fromkeys(ANSWERS, learn) | {
    "refusal": refuses(503),
    "misbehaving": learn_at_the_second_try,
}


@dataclass(frozen=True)
class LearningSettings(Settings):
    """Settings of a chat that learns after `turns` turns."""

    turns: int
    scope: str

    def to_json(self) -> Json:
        """Return the settings as a request sends them."""
        return {
            **super().to_json(),
            "memos": {"enabled": False, "include_system": self.include_system},
            "memories": {"learn_scope": self.scope},
            # What another chat learns in a wide scope changes the contexts of frozen lines, which are compared.
            "blocks": {"from_memories": self.scope == "chat"},
            "consolidation": {"enabled": True, "every_turns": self.turns},
        }


@st.composite
def draw_settings(draw: st.DrawFn) -> LearningSettings:
    """Draw settings under which ranges and cuts end within a few messages."""
    keep, grow, turns = draw(st.integers(2, 4)), draw(st.integers(0, 3)), draw(st.sampled_from([1, 1, 2, 5]))
    most, max_turns = keep + grow + draw(st.sampled_from([2, 10, 32])), draw(st.sampled_from([0, 0, 2, 3]))
    scope = draw(st.sampled_from(["chat", "character", "user", "global"]))
    return LearningSettings(0, 0, keep, grow, most, draw(st.booleans()), turns, scope, max_turns=max_turns)


@dataclass(frozen=True)
class Owner:
    """Whose memories a chat learns: those of the chat, the tenant, a user, or a user with a character.

    `name` is the name of the character when the memory was learnt.
    """

    chat_id: str | None = None
    user: str | None = None
    name: str | None = None


class LearningService(Service):
    """A service whose ranges of messages can be read."""

    def open_seq(self, chat_id: str) -> int:
        """Return where the range begins that is still open, on the current line of a chat."""

        async def read() -> int:
            async with self.database.raw() as connection:
                found: int = await connection.fetchval(_OPEN_SEQ, chat_key(self.tenant, chat_id))
            return found

        open_seq: int = self.run(read())
        return open_seq


class LearningMachine(ChatMachine):
    """Chats that learn from their messages."""

    service: LearningService
    model_answers = LEARNT

    def __init__(self) -> None:
        super().__init__()
        self.texts = count()
        # The users of each chat, the present one last.
        self.users: dict[str, list[str | None]] = {}
        self.decisions: dict[str, Decisions] = {}
        # The words whose memories any chat has forgotten or replaced: other chats may not learn them, either.
        self.lost = set[str]()
        # The words whose memories a person forgot, replaced or archived in each chat, and before its fork in the former
        # chat. Such a decision does not change what a chat knows that shares no scope.
        self.decided = defaultdict[str, set[str]](set)
        # The topics that each chat has known, and those that it did not know any more at some time: a version that was
        # learnt then is another memory beside the former ones, should they come back.
        self.topics: dict[str, set[int]] = {}
        self.divided: dict[str, set[int]] = {}
        # The chats in which an import gave messages another order than that in which they were learnt.
        self.reordered = set[str]()

    @initialize(
        settings=draw_settings(),
        opening=st.lists(kind_lists, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(self, settings: LearningSettings, opening: list[list[str]], made: bool, frozen: bool) -> None:
        body = {"user_id": USERS[0], "characters": [{"name": NAMES["assistant"]}], "settings": settings.to_json()}
        self.users["c"], self.decisions["c"] = [USERS[0]], Decisions()
        line = self.request("PUT", "/chats/c", 201, body)["line"]
        self.begin_on(Line(line, settings, names=[NAMES["assistant"]]), opening, made=made, frozen=frozen)

    @rule(turns=st.sampled_from([1, 2, 5]))
    def change_turns(self, turns: int) -> None:
        self.line.settings = replace(self.settings_of(self.chat), turns=turns)
        self.request("PUT", self.chat.path, 200, {"settings": self.line.settings.to_json()})

    @rule(turns=st.sampled_from([9, 14]))
    def post_many(self, turns: int) -> None:
        """Post so many messages at once that one answer cannot have all that is to be learnt from them."""
        self.service.clock.step(1)
        self.post_messages(self.new_messages(["user", "assistant"] * turns), set())

    @rule(name=st.sampled_from([NAMES["assistant"], "Ilse", "Noor"]))
    def rename(self, name: str) -> None:
        """Rename the character, maybe back to a name that it had."""
        self.request("POST", f"{self.chat.path}/characters/{self.line.character}/rename", 200, {"name": name})
        self.line.rename(name)

    @rule(user=st.sampled_from([*USERS, None]))
    def change_user(self, user: str | None) -> None:
        """Give the chat to another user, or to none."""
        self.request("PUT", self.chat.path, 200, {"user_id": user})
        self.users[self.chat.id].append(user)

    @rule(
        pick=picks,
        how=st.sampled_from([*FIELDS, "edit", "edit", "forget", "forget"]),
        then=st.sampled_from([None, "say again", "say again", "read again"]),
    )
    def decide(self, pick: int, how: str, then: str | None) -> None:
        """Edit, forget, archive or rate all memories that the chat has of a word, and let it be learnt again."""
        words = sorted(self.known(self.chat))
        if not words:
            return
        word = words[pick % len(words)]
        for item in self.list_memories(self.chat):
            if word in WORD.findall(item["content"]):
                self.decide_about(item, word, how)
        for frozen in self.chat.checkpoints.values():
            frozen.contexts = self.service.contexts(self.chat.id, line=frozen.line.id)
        for line_id in self.chat.abandoned:
            self.chat.abandoned[line_id] = self.service.contexts(self.chat.id, line=line_id)
        message = next((one for one in self.line.eligible(1, self.line.head) if word in WORD.findall(one.text)), None)
        if message and then:
            self.service_matches_reference()
            if then == "say again":
                self.say_again(message)
            else:
                self.change_neighbours(message)
            self.service_matches_reference()
            self.work("well", 3, False)

    def say_again(self, message: Message) -> None:
        """Cut off a message, and post it again in another turn, with the text that it had first."""
        posted = next(one for one in self.chat.posted if one.id == message.id)
        self.truncate(self.line.head - message.seq + 1)
        self.service_matches_reference()
        self.post_messages([deepcopy(posted), *self.new_messages(["user", "assistant"])], set())

    def change_neighbours(self, message: Message) -> None:
        """Edit the messages before and after a message, so that its range is read again."""
        for one in self.line.not_deleted:
            if abs(one.seq - message.seq) == 1 and not one.is_call:
                text = self.new_text()
                self.change_message("PATCH", one, "", 200, {"content": text})
                with self.line.changing():
                    one.set_text(text)

    def decide_about(self, item: Json, word: str, how: str) -> None:
        decisions, line_id = self.decisions[self.chat.id], self.line.id
        path = f"{self.chat.path}/memories/{item['id']}"
        has_text = how in FIELDS and item["scope"] != "chat"  # its text is the chat's own from now on
        if how in ("archive", "forget", "edit") or has_text:
            self.decided[self.chat.id].add(word)
        if how in FIELDS:
            self.request("PATCH", path, 200, FIELDS[how])
            decisions.set_fields(line_id, word, item, FIELDS[how])
            return
        if how == "forget":
            self.request("DELETE", path, 204)
        decisions.lose(line_id, word)
        self.lost.add(word)
        if how == "edit":
            text = self.new_person_text()
            self.request("PATCH", path, 200, {"content": text})
            decisions.kept |= set(WORD.findall(text))

    def put_messages(self, wanted: list[Wanted], *, named: bool) -> None:
        self.reordered.add(self.chat.id)
        super().put_messages(wanted, named=named)

    def note_fork(self, forked: Chat) -> None:
        self.topics[forked.id] = set(self.topics.get(self.chat.id, ()))
        self.divided[forked.id] = set(self.divided.get(self.chat.id, ()))
        self.decided[forked.id] = set(self.decided[self.chat.id])
        if self.chat.id in self.reordered:
            self.reordered.add(forked.id)
        self.users[forked.id] = list(self.users[self.chat.id])
        self.decisions[forked.id] = self.decisions[self.chat.id].fork(self.line.id, forked.line.id)

    def new_text(self) -> str:
        """Return a text; every other one has a word to learn."""
        number = next(self.counter)
        return f"lamp w{number}w" if next(self.texts) % 2 == 0 else f"lamp {number}"

    # --- the comparison ---

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        """Check that each chat knows only what it may, and that recall finds what the chat knows now."""
        for one in self.chats:
            said = self.said(one, read=False)
            items = self.list_memories(one)
            self.decisions[one.id].check(one.line.id, items, said)
            self.check_versions(one, items)
        self.check_recall(chat)

    def check_versions(self, chat: Chat, items: list[Json]) -> None:
        """Check that a chat has one memory of each topic, unless it did not know the topic for a while."""
        versions = [topic for item in items for topic in map(find_topic, WORD.findall(item["content"]))]
        known = {topic for topic in versions if topic is not None}
        known_before = self.topics.setdefault(chat.id, set())
        divided = self.divided.setdefault(chat.id, set())
        divided |= known_before - known
        known_before |= known
        if self.is_alone(chat):
            for topic in known - divided - self.lost_topics(chat):
                assert versions.count(topic) == 1

    def is_alone(self, chat: Chat) -> bool:
        """Return whether all that a chat knows is in one scope, in which no other chat learns."""
        owners = self.list_owners(chat)
        return len(owners) == 1 and not any(owners & self.list_owners(one) for one in self.chats if one is not chat)

    def lost_topics(self, chat: Chat) -> set[int | None]:
        """Return the topics of which a person decided about a version in a chat, or before its fork.

        Rating or pinning counts for memories of a wider scope alone: the chat then has the memory as a text of its own,
        which hides later versions of the wider scope.
        """
        return {find_topic(word) for word in self.decided[chat.id]}

    def list_required(self, chat: Chat) -> set[str]:
        """Return the words that a chat must know: of each topic the newest version alone.

        It is left open which version holds if other chats learn in the scope, too, or if the order of the messages is
        not that of learning.
        """
        said = self.said(chat, read=True)
        words = {word for word in said if find_topic(word) is None}
        if self.is_alone(chat) and chat.id not in self.reordered:
            last_seq = self.service.open_seq(chat.id) - 1
            in_order = [word for one in chat.line.eligible(1, last_seq) for word in WORD.findall(one.text)]
            newest = {find_topic(word): word for word in in_order if word in said}
            # After a cut-off, a part of a range that was read is open again; what it taught still holds.
            open_words = [
                word for one in chat.line.eligible(last_seq + 1, chat.line.head) for word in WORD.findall(one.text)
            ]
            later = {find_topic(word) for word in self.known(chat).intersection(open_words)}
            words |= {word for topic, word in newest.items() if topic not in self.lost_topics(chat) | later}
        return words

    def check_recall(self, chat: Chat) -> None:
        """Check that a context recalls the same as one that names its line, which does not use remembered texts.

        Only the likeliest texts are ranked. Of more than those, one chooses among memories and messages together, and
        the other among memories alone.
        """
        known = self.known(chat)
        if len(known) > MAX_LIKELY // 2:  # each has a message, too
            return
        query = " ".join(sorted(known)[-MOST_RECALLED:]) or "lamp"
        options: Json = {"recall": "auto", "query": query, "recall_tokens": 4_000, "max_tokens": 20_000}
        line = self.request("GET", chat.path, 200)["line"]
        remembered = self.request("GET", f"{chat.path}/context", 200, **options)["recalled"]
        read = self.request("GET", f"{chat.path}/context", 200, line=line, **options)["recalled"]
        assert [one["id"] for one in remembered] == [one["id"] for one in read]

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        errors = [row["error"] for row in snapshot.work.values()]
        assert not [error for error in errors if "unexpected" in (error or "")]
        self.check(chat, may_advance=True)

    def settle(self) -> None:
        """Check that each chat knows what its messages say, up to the range that is still open."""
        for chat, snapshot in self.settle_chats():
            assert not snapshot.work
            kept = self.decisions[chat.id].kept
            assert (self.list_required(chat) - self.lost) | kept <= self.known(chat)
            assert self.exported(chat) == self.known(chat)
            self.check(chat, may_advance=True)

    def known(self, chat: Chat) -> set[str]:
        """Return the unique words of the memories that a chat has."""
        return set(WORD.findall(" ".join(item["content"] for item in self.list_memories(chat))))

    def list_memories(self, chat: Chat) -> list[Json]:
        """Return the memories that a chat has, those of the archive included, into which only people put some."""
        has_archive = any(fields.get("archived") for fields in self.decisions[chat.id].fields.values())
        path = f"{chat.path}/memories"
        listed: list[Json] = self.request("GET", path, 200, limit=500)["items"]
        return [*listed, *(self.request("GET", path, 200, limit=500, archived=True)["items"] if has_archive else [])]

    def exported(self, chat: Chat) -> set[str]:
        """Return the unique words of the memories that the state of a chat contains."""
        state = self.request("GET", f"{chat.path}/state", 200)["layers"]["memories"]
        return set(WORD.findall(" ".join(item["content"] for item in state)))

    def said(self, chat: Chat, *, read: bool) -> set[str]:
        """Return the unique words that can be known now; with `read`, only those that must be.

        A chat learns in the scope that it has at that time. The reference does not know when that is, so it considers
        all users that the chat had, and all names of its character.
        """
        sees = self.list_seen(chat)
        texts = []
        for one in self.chats:
            owners = self.list_owners(one)
            if owners <= sees if read else owners & sees:
                last_seq = self.service.open_seq(one.id) - 1 if read else one.line.head
                texts += [message.text for message in one.line.eligible(1, last_seq)]
        return set(WORD.findall(" ".join(texts)))

    def settings_of(self, chat: Chat) -> LearningSettings:
        settings = chat.line.settings
        assert isinstance(settings, LearningSettings)
        return settings

    def list_seen(self, chat: Chat) -> set[Owner]:
        """Return whose memories a chat sees."""
        user = self.users[chat.id][-1]
        seen = {Owner(chat_id=chat.id), Owner()}
        if user is not None:
            seen |= {Owner(user=user), *(Owner(user=user, name=name) for name in chat.line.names)}
        return seen

    def list_owners(self, chat: Chat) -> set[Owner]:
        """Return whose memories those that a chat has learnt can be."""
        settings = self.settings_of(chat)
        found = set[Owner]()
        for user in self.users[chat.id]:
            match settings.scope:
                case "global" if user is not None:
                    found.add(Owner())
                case "user" if user is not None:
                    found.add(Owner(user=user))
                case "character" if user is not None:
                    found |= {Owner(user=user, name=name) for name in chat.line.names}
                case _:
                    found.add(Owner(chat_id=chat.id))
        return found
