"""How many teachings are read to learn sentences in a scope with thousands of memories.

They are those of the memories that a sentence can duplicate or replace. In a full scope, they are those of all
memories at most once.
"""

from hashlib import md5

import httpx
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key, user_key
from app.kit.owners import NO_LINE
from tests.conftest import NOON
from tests.facts.asking import begin
from tests.memories.asking import Learner
from tests.plans import counted
from tests.talk import append, put, talk

MEMORIES = 2_000
MOST = 100
"""The setting `max_memories`: so many of the newest memories are not in the archive."""

FORGOTTEN = MEMORIES // 20

REPEATED = 12
"""So many of the newest sentences are learnt again at once."""

TEXT = "The letter {} lies in the lamp room."

# Each memory was said an hour after the one before. A person put every tenth into the archive, and replaced or forgot
# the text of another tenth.
FILL = f"""
    CREATE TEMPORARY TABLE said AS
    SELECT n, md5($1::text || n)::uuid AS id, '00000000-0000-7000-8000-' || lpad(n::text, 12, '0') AS key,
        $3::timestamptz - make_interval(hours => {MEMORIES} - n) AS at, replace($2::text, '{{}}', md5(n::text)) AS text
    FROM generate_series(1, {MEMORIES}) AS n"""

FILL_STATEMENTS = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at,
        archived)
    SELECT $1, '{NO_LINE}', id, 'memory', key, text, 0.5, 'model', at, CASE WHEN n % 10 = 1 THEN true END FROM said"""

FILL_DECISIONS = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at, is_set)
    SELECT $1, '{NO_LINE}', md5(id::text)::uuid, 'memory', key, CASE WHEN n % 20 = 2 THEN 'Other words ' || n END, 0.5,
        'person', at + interval '1 second', true
    FROM said WHERE n % 10 = 2"""

FILL_TEACHINGS = """
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, said_at)
    SELECT c.chat_key, c.line_id, id, 'memories', id, $1, 1, at FROM said CROSS JOIN chats c WHERE c.chat_key = $2"""


@pytest.fixture
async def filled(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """A user with many memories, and a chat that learns in the user's scope."""
    for chat_id in ("c", "d"):
        await begin(api, chat_id, memories={"learn_scope": "user", "max_memories": MOST})
        await append(api, talk(1, 4), chat_id)
    owner = user_key(tenant, "mira")
    async with database.raw() as connection:
        await connection.execute(FILL, tenant, TEXT, NOON)
        await connection.execute(FILL_STATEMENTS, owner)
        await connection.execute(FILL_DECISIONS, owner)
        await connection.execute(FILL_TEACHINGS, owner, chat_key(tenant, "d"))
        await connection.execute("DROP TABLE said")


def text_of(number: int) -> str:
    """The text of a memory that was learnt."""
    return TEXT.format(md5(str(number).encode(), usedforsecurity=False).hexdigest())


@pytest.mark.usefixtures("filled")
async def test_a_new_sentence_judges_no_memory(learn: Learner, database: Database) -> None:
    async with counted(database) as read:
        assert (await learn("Tomas sails to Bergen.", "m1")).outcome == "new"
    assert read.teachings <= 2 * FORGOTTEN
    assert read.returned <= FORGOTTEN + 10


@pytest.mark.usefixtures("filled")
async def test_a_known_sentence_judges_its_memory(api: httpx.AsyncClient, learn: Learner, database: Database) -> None:
    await put(api, status=200, settings={"memories": {"max_memories": 2 * MEMORIES}})
    for number, outcome in ((MEMORIES, "duplicate"), (MEMORIES - 18, "duplicate"), (MEMORIES - 8, "forgotten")):
        async with counted(database) as read:
            assert (await learn(text_of(number), "m1")).outcome == outcome
        assert read.teachings <= 2 * FORGOTTEN + 10, number
        assert read.returned <= FORGOTTEN + 10, number


@pytest.mark.usefixtures("filled")
async def test_of_a_full_scope_the_strongest_are_judged(learn: Learner, database: Database) -> None:
    async with counted(database) as read:
        found = await learn(text_of(10).replace("room", "rooms"), "m1")
    assert found.outcome == "new", "the similar memory is in the archive"
    assert read.teachings <= 2 * FORGOTTEN + 2 * MOST
    assert read.returned <= FORGOTTEN + 10
    found = await learn(text_of(MEMORIES).replace("room", "rooms"), "m1")
    assert found.outcome == "supersedes", "the similar memory is one of the strongest"


@pytest.mark.usefixtures("filled")
async def test_a_full_scope_is_judged_once(learn: Learner, database: Database) -> None:
    newest = [number for number in range(MEMORIES - 20, MEMORIES + 1) if number % 10 > 2][:REPEATED]
    async with counted(database) as read:
        found = await learn.learn_together([text_of(number) for number in newest], "m1")
    assert [one.outcome for one in found] == ["duplicate"] * REPEATED
    assert read.teachings <= MEMORIES + 2 * FORGOTTEN + 5 * REPEATED
    assert read.returned <= FORGOTTEN + 5 * REPEATED
