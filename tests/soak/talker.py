"""A client that changes its chats at random over HTTP, and keeps a ledger of what was acknowledged."""

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx

from tests.slowness import SLOWNESS
from tests.soak.ledger import Ledger, Line, Said, Violation, check_context, words_of
from tests.soak.stack import ADMIN_KEY, Stack
from tests.talk import Json

PRESETS: Final = ("memo", "companion", "diary", "scenes", "agent", "decay")
WITH_MEMOS: Final = ("memo", "companion")
WITH_DIARY: Final = ("diary", "companion")
FORMATS: Final = ("segments", "openai", "anthropic", "text")
LONGEST: Final = 150
"""A chat with more messages is left alone, and a new one begins."""

PATIENCE_S = 60.0 * SLOWNESS
"""How long a request may remain unanswered after a fault is undone, and as long as any fault lasts."""


@dataclass
class Talk:
    """A chat of a talker.

    Attributes:
        id: The chat's id.
        preset: Its preset.
        every: The number of eligible messages of a batch; None if it may have changed, or memos are off.
        ledger: What has to be in it.
        last: The body of the last append, if nothing else was done since.

    """

    id: str
    preset: str
    every: int | None
    ledger: Ledger = field(default_factory=Ledger)
    last: list[Json] | None = None

    @property
    def path(self) -> str:
        return f"/v1/chats/{self.id}"


@dataclass
class Talker:
    """A client.

    Attributes:
        turn: Held during a step; who holds it has the client pause with nothing in doubt.
        count: How often what happened.

    """

    stack: Stack
    number: int
    rng: random.Random
    count: Counter[str]
    talks: list[Talk] = field(default_factory=list)
    former: list[Talk] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        proxy = self.stack.proxies[self.number % len(self.stack.proxies)]
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{proxy.port}",
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
            timeout=PATIENCE_S,
            trust_env=False,
        )
        self._names = itertools.count(1)

    async def run(self) -> None:
        """Take steps until cancelled. Raises Violation."""
        while True:
            async with self.turn:
                await self.step()
            await asyncio.sleep(self.rng.uniform(0, 0.05))

    async def step(self) -> None:
        """Do one thing at random."""
        if len(self.talks) < 2:
            await self._begin()
        talk = self.rng.choice(self.talks)
        try:
            await self._step(talk)
        except Violation as violation:
            raise Violation(f"chat {talk.id} ({talk.preset}): {violation}") from violation

    async def _step(self, talk: Talk) -> None:
        if len(talk.ledger.now.messages) > LONGEST:
            self.talks.remove(talk)
            self.former.append(talk)
            return
        if not talk.ledger.now.messages:
            await self._append(talk)
            return
        names, weights = zip(*_WEIGHTS.items(), strict=True)
        name = self.rng.choices(names, weights)[0]
        await getattr(self, f"_{name}")(talk)
        self.count[name] += 1

    async def _begin(self) -> None:
        preset = self.rng.choice(PRESETS)
        every = self.rng.choice((2, 4, 8))
        talk = Talk(f"s{self.number}-{next(self._names)}", preset, every if preset in WITH_MEMOS else None)
        settings: Json = {"preset": preset, "memos": {"every_messages": every}}
        body = {"user_name": "Mira", "characters": [{"name": "Kai"}], "settings": settings}
        await self._repeat("PUT", talk.path, (200, 201), json=body)
        self.talks.append(talk)

    async def _append(self, talk: Talk) -> None:
        number = self.rng.choice((1, 2, 2, 2, 3, 6, 30))
        await self._post(talk, [self._new_message(talk, n) for n in range(number)])

    async def _post(self, talk: Talk, body: list[Json]) -> None:
        after = talk.ledger.now.append(map(_as_said, body))
        given: Json = {"messages": body}
        if wants_context := self.rng.random() < 0.2:
            given["context"] = {"max_tokens": 6_000}
        answer = await self._send("POST", f"{talk.path}/messages", json=given)
        if answer is None:
            talk.ledger.doubt(after)
            # Half of the clients send it again at once, and the others look first what became of it.
            if self.rng.random() < 0.5:
                found = await self._repeat("POST", f"{talk.path}/messages", (200, 201), json={"messages": body})
                _check_seqs(found, body)
            await self._decide(talk)
            if talk.ledger.now.messages[-1:] != after.messages[-1:]:
                self.count["appends lost before they were stored"] += 1
        else:
            _expect(answer, 201)
            found = answer.json()
            _check_seqs(found, body)
            seqs = {item["id"]: item["seq"] for item in found["messages"]}
            known = [replace(said, seq=seqs.get(said.id, said.seq)) for said in after.messages]
            talk.ledger.now = replace(after, messages=tuple(known))
            self.count["messages acknowledged"] += len(body)
            if wants_context and found["context"] is not None:
                check_context(talk.ledger.now, found["context"], 6_000)
                self.count["contexts read"] += 1
            talk.ledger.unhidden = False
            talk.last = body

    async def _repeat_append(self, talk: Talk) -> None:
        if talk.last is None:
            return
        found = await self._repeat("POST", f"{talk.path}/messages", (200,), json={"messages": talk.last})
        if found["created"]:
            raise Violation(f"a repeated append created {found['created']} messages again")

    async def _conflict(self, talk: Talk) -> None:
        """An id that has another text: the whole request is refused."""
        taken = self.rng.choice(talk.ledger.now.messages)
        body = [self._new_message(talk), self._new_message(talk) | {"id": taken.id, "role": taken.role}]
        answer = await self._send("POST", f"{talk.path}/messages", json={"messages": body})
        if answer is not None:
            _expect(answer, 409)
        await self._decide(talk)

    async def _invalid(self, talk: Talk) -> None:
        body = [self._new_message(talk), self._new_message(talk) | {"content": ""}]
        answer = await self._send("POST", f"{talk.path}/messages", json={"messages": body})
        if answer is not None:
            _expect(answer, 422)
        await self._decide(talk)

    async def _edit(self, talk: Talk) -> None:
        said, text = self._pick(talk), self._text(self.rng.choice(["user", "assistant"]))
        await self._change(talk, "PATCH", _of(talk, said), lambda line: line.change(said.id, text=text), content=text)

    async def _exclude(self, talk: Talk) -> None:
        said = self._pick(talk)
        await self._change(
            talk,
            "PATCH",
            _of(talk, said),
            lambda line: line.change(said.id, excluded=not said.excluded),
            excluded=not said.excluded,
        )

    async def _swipe(self, talk: Talk) -> None:
        said, text = self._pick(talk), self._text("assistant")
        swipes = (*said.texts, text)
        await self._change(
            talk,
            "POST",
            f"{_of(talk, said)}/swipes",
            lambda line: line.change(said.id, text=text, swipes=swipes),
            content=text,
        )

    async def _select(self, talk: Talk) -> None:
        said = self._pick(talk)
        index = self.rng.randrange(len(said.texts))
        chosen = said.texts[index]
        await self._change(
            talk,
            "PUT",
            f"{_of(talk, said)}/swipes/selected",
            lambda line: line.change(said.id, text=chosen, swipes=said.swipes),
            index=index,
        )

    async def _delete(self, talk: Talk) -> None:
        said = self._pick(talk)
        await self._change(talk, "DELETE", _of(talk, said), lambda line: line.delete(said.id))

    async def _hide(self, talk: Talk) -> None:
        seqs = sorted(self._pick(talk).seq or 1 for _ in range(2))
        hidden = self.rng.random() < 0.6
        wanted = [{"first_seq": seqs[0], "last_seq": seqs[1], "hidden": hidden}]
        await self._change(
            talk,
            "POST",
            f"{talk.path}/messages/visibility",
            lambda line: line.hide(seqs[0], seqs[1], hidden=hidden),
            ranges=wanted,
        )

    async def _cut_off(self, talk: Talk) -> None:
        messages = talk.ledger.now.messages
        seq = messages[-min(len(messages), self.rng.choice((1, 2, 5, 12)))].seq or 1
        await self._change(talk, "DELETE", f"{talk.path}/messages?from_seq={seq}", lambda line: line.cut_off(seq))

    async def _import(self, talk: Talk) -> None:
        """Send the whole list again, with texts that differ, missing, new, inserted or moved messages."""
        wanted = list(talk.ledger.now.messages)
        for _ in range(self.rng.randrange(3)):
            at = self.rng.randrange(len(wanted))
            kind = self.rng.choice(("edit", "leave out", "add", "insert", "move"))
            if kind == "edit":
                line = Line(tuple(wanted)).change(wanted[at].id, text=self._text("assistant"))
                wanted = list(line.messages)
            elif kind == "leave out" and len(wanted) > 1:
                del wanted[at]
            elif kind in ("add", "insert"):
                wanted.insert(len(wanted) if kind == "add" else at, _as_said(self._new_message(talk)))
            elif kind == "move":
                wanted.append(wanted.pop(at))
        body = [
            {"id": said.id, "role": said.role, "content": said.text} | ({"kind": "thought"} if said.thought else {})
            for said in wanted
        ]
        after = tuple(replace(said, seq=None) for said in wanted)
        former = await self._line_id(talk)
        before = talk.ledger.now
        await self._change(
            talk, "PUT", f"{talk.path}/messages", lambda line: replace(line, messages=after), messages=body
        )
        await self._keep_former(talk, former, before)

    async def _checkpoint(self, talk: Talk) -> None:
        if len(talk.ledger.checkpoints) < 4:
            name = f"point {next(self._names)}"
            await self._repeat("POST", f"{talk.path}/checkpoints", (201, 409), json={"name": name})
            talk.ledger.checkpoints[name] = talk.ledger.now

    async def _restore(self, talk: Talk) -> None:
        if talk.ledger.checkpoints:
            name = self.rng.choice(sorted(talk.ledger.checkpoints))
            frozen = talk.ledger.checkpoints[name]
            await self._change_line(talk, f"{talk.path}/checkpoints/{name}/restore", frozen)

    async def _switch(self, talk: Talk) -> None:
        if talk.ledger.lines:
            found = await self._repeat("GET", f"{talk.path}/lines", (200,))
            listed = sorted({item["line"] for item in found["items"]} & set(talk.ledger.lines))
            if listed:
                line_id = self.rng.choice(listed)
                await self._change_line(talk, f"{talk.path}/lines/{line_id}/switch", talk.ledger.lines[line_id])

    async def _change_line(self, talk: Talk, path: str, after: Line) -> None:
        former, before = await self._line_id(talk), talk.ledger.now
        await self._change(talk, "POST", path, lambda _line: after, former=former)
        await self._keep_former(talk, former, before)

    async def _fork(self, talk: Talk) -> None:
        if len(self.talks) >= 4:
            return
        at_seq = self._pick(talk).seq
        fork = Talk(f"{talk.id}-{next(self._names)}"[-150:], talk.preset, talk.every)
        await self._repeat("POST", f"{talk.path}/fork", (201, 409), json={"chat_id": fork.id, "at_seq": at_seq})
        fork.ledger.now = talk.ledger.now.cut_off((at_seq or 0) + 1)
        fork.ledger.unhidden = True
        self.talks.append(fork)
        await self._decide(fork)

    async def _settings(self, talk: Talk) -> None:
        talk.preset, talk.every = self.rng.choice(PRESETS), None
        await self._repeat("PUT", talk.path, (200,), json={"settings": {"preset": talk.preset}})

    async def _tool(self, talk: Talk) -> None:
        text = f"I keep {self._word('p')} in mind."
        talk.ledger.now = talk.ledger.now.note(text)
        expected = (200,) if talk.preset in WITH_DIARY else (200, 404, 409, 422)
        await self._repeat("POST", f"{talk.path}/tools/save_memory", expected, json={"content": text})

    async def _write_memo(self, talk: Talk) -> None:
        text = f"They once found {self._word('p')} at sea."
        talk.ledger.now = talk.ledger.now.note(text)
        await self._repeat("POST", f"{talk.path}/memos", (201, 409), json={"text": text})

    async def _context(self, talk: Talk) -> None:
        options: Json = {"format": self.rng.choice(FORMATS), "max_tokens": self.rng.choice((3_000, 8_000))}
        found = await self._repeat("GET", f"{talk.path}/context", (200,), params=options)
        if options["format"] == "segments":
            check_context(talk.ledger.now, found, options["max_tokens"])
        elif found["tokens"] > options["max_tokens"]:
            raise Violation(f"a context of {found['tokens']} tokens, more than {options['max_tokens']}")
        elif strange := words_of(json.dumps(found)) - talk.ledger.now.words:
            raise Violation(f"the context contains {sorted(strange)[:5]}, which the line does not have: {found}")
        self.count["contexts read"] += 1

    async def list_messages(self, talk: Talk, line: str | None = None) -> list[Json]:
        """Return all messages of the chat, or of one of its lines."""
        query: Json = {"limit": 500} | ({"line": line} if line else {})
        items: list[Json] = (await self._repeat("GET", f"{talk.path}/messages", (200,), params=query))["items"]
        return items

    async def read(self, talk: Talk, path: str, **query: Any) -> Json:
        """Return what the service answers to a question about a chat."""
        return await self._repeat("GET", f"{talk.path}{path}", (200,), params=query)

    async def _change(
        self, talk: Talk, method: str, path: str, change: Callable[[Line], Line], *, former: str = "", **body: Any
    ) -> None:
        """Send a change, and note what it leaves, or that this is in doubt.

        `former` is the id of the current line, if the change makes another one current.
        """
        after = change(talk.ledger.now)
        answer = await self._send(method, path, json=body or None)
        talk.last, talk.ledger.unhidden = None, True
        if answer is None:
            talk.ledger.doubt(after)
            await self._decide(talk, former)
        else:
            _expect(answer, 200, 201, 204)
            talk.ledger.now = after
            self.count["changes acknowledged"] += 1
            if any(said.seq is None for said in after.messages):
                talk.ledger.settle(await self.list_messages(talk))

    async def _decide(self, talk: Talk, former: str = "") -> None:
        """Find out whether the request in doubt was applied.

        A change of the chat waits for the chat's lock. So when one that is sent later has been answered, the request in
        doubt has been applied, or never will be.
        """
        barrier = {"metadata": {"barrier": next(self._names)}}
        line = (await self._repeat("PUT", talk.path, (200, 201), json=barrier))["line"]
        talk.ledger.settle(await self.list_messages(talk), moved=line != former if former else None)

    async def _keep_former(self, talk: Talk, former: str, before: Line) -> None:
        if await self._line_id(talk) != former:
            talk.ledger.lines[former] = before

    async def _line_id(self, talk: Talk) -> str:
        line: str = (await self._repeat("GET", talk.path, (200,)))["line"]
        talk.ledger.lines.pop(line, None)  # it is the current one, and so it changes
        return line

    async def _repeat(self, method: str, path: str, expected: tuple[int, ...], **given: Any) -> Json:
        """Send a request until it is answered. Raises Violation if it is not, or not as expected."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (answer := await self._send(method, path, **given)) is None:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise Violation(f"{method} {path} was not answered for {PATIENCE_S:g} s") from None
        _expect(answer, *expected)
        found: Json = answer.json() if answer.content else {}
        return found

    async def _send(self, method: str, path: str, **given: Any) -> httpx.Response | None:
        """Send a request once; None if its outcome is unknown. Raises Violation for an unexpected error."""
        try:
            answer = await self.http.request(method, path, **given)
        except httpx.TransportError:
            self.count["requests without an answer"] += 1
            return None
        self.count["answers"] += 1
        if answer.status_code in (429, 503):
            self.count["answers 429 and 503"] += 1
            if answer.status_code == 503 and "retry-after" not in answer.headers:
                raise Violation(f"{method} {path}: a 503 without Retry-After: {answer.text}")
            return None
        if answer.status_code >= 500:
            raise Violation(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def _pick(self, talk: Talk) -> Said:
        return self.rng.choice(talk.ledger.now.messages)

    def _new_message(self, talk: Talk, offset: int = 0) -> Json:
        turn = len(talk.ledger.now.messages) + offset
        role = self.rng.choices(("user" if turn % 2 == 0 else "assistant", "narrator", "system"), (20, 1, 1))[0]
        made: Json = {"id": f"m-{self.number}-{next(self._names)}", "role": role, "content": self._text(role)}
        if role == "assistant" and self.rng.random() < 0.1:
            made["kind"] = "thought"
        return made

    def _text(self, role: str) -> str:
        return f"The {role} speaks of the lamp {self._word('w')} that burns over the harbour."

    def _word(self, kind: str) -> str:
        return f"{kind}{self.number}{next(self._names):06}{kind}"


_WEIGHTS = {
    "append": 40,
    "repeat_append": 6,
    "conflict": 2,
    "invalid": 1,
    "edit": 8,
    "exclude": 3,
    "swipe": 6,
    "select": 4,
    "delete": 4,
    "hide": 4,
    "cut_off": 2,
    "import": 3,
    "checkpoint": 2,
    "restore": 2,
    "switch": 2,
    "fork": 1,
    "settings": 1,
    "tool": 3,
    "write_memo": 2,
    "context": 15,
}
"""How often a talker does what."""


def _as_said(body: Json) -> Said:
    return Said(body["id"], body["role"], body["content"], thought=body.get("kind") == "thought")


def _of(talk: Talk, said: Said) -> str:
    return f"{talk.path}/messages/{said.id}"


def _check_seqs(found: Json, body: list[Json]) -> None:
    seqs = [item["seq"] for item in found["messages"]]
    if [item["id"] for item in found["messages"]] != [item["id"] for item in body] or seqs != sorted(set(seqs)):
        raise Violation(f"an append answered with other messages or another order: {found}")


def _expect(answer: httpx.Response, *expected: int) -> None:
    if answer.status_code not in expected:
        request = answer.request
        raise Violation(f"{request.method} {request.url.path}: {answer.status_code} {answer.text}")
