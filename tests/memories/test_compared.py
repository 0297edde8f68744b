"""What becomes of a new sentence, against a slow reference that compares it with everything in the scope."""

import tracemalloc
from types import SimpleNamespace
from typing import NamedTuple, cast
from uuid import UUID, uuid4

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.chats.head import Head
from app.kit.db import Connection, DbSession
from app.knowledge.known import fold
from app.knowledge.scopes import ScopeKey
from app.memories.candidates import Candidates
from app.memories.dedupe import Known, compare, similarity
from app.memories.known_memories import Forgotten, Held, Taught, hash_forgotten, keeping_of, read_known
from app.memories.memory import Memory
from app.memories.queries import Choice, list_of_scope
from app.memories.settings import MemorySettings
from tests.conftest import NOON
from tests.memories.test_held import KEYS, Text, fill, texts

SENTENCES = (
    "Mira has two cats.",
    "Mira has three cats.",
    "mira  HAS two cats.",
    "Kai sails.",
    "Kai sails",
    "猫が好き。",
    "!",
)
LINE = (UUID(int=1), UUID(int=2))
"""The line that learns: the current line of its chat."""

FORMER_LINE = UUID(int=3)
"""A former line of the same chat."""

FILL_LINES = """
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, line_status, line_created_at, created_at, last_active_at)
    VALUES ($1, $2, 'x', 'y', 'current', now(), now(), now()), ($1, $3, 'x', 'y', 'abandoned', now(), now(), now())"""

WRITE_BY_PERSONS = "UPDATE statements SET origin = 'person' WHERE owner_key = $1 AND statement_id = ANY ($2)"

FORGET = "UPDATE statements SET forgotten = $3 WHERE owner_key = $1 AND statement_id = $2"

TEACH_BY_CHAT = """
    UPDATE teachings t SET chat_key = $3, line_id = CASE c.line_status WHEN 'current' THEN $4::uuid ELSE $5::uuid END
    FROM chats c
    WHERE t.wide_key = $1 AND t.statement_id = ANY ($2) AND c.chat_key = t.chat_key AND c.line_id = t.line_id"""
"""The chat that learns has taught these statements, by its present and by its former line."""

Outcome = Forgotten | Taught | UUID | None
"""What becomes of a sentence; the id of a memory if it is a new text of that memory."""

contents = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3)
limits = st.builds(
    MemorySettings,
    max_memories=st.integers(1, 4),
    forget_below=st.sampled_from([None, 0.1, 0.3]),
    dedupe_threshold=st.sampled_from([0, 0.3, 0.6, 0.85, 1]),
)


class Said(NamedTuple):
    """Statements with some of the sentences as their texts.

    Attributes:
        texts: The statements.
        by_persons: The ids of those whose text a person wrote.
        by_chat: The ids of those that the chat has taught that learns.
        forgotten: The sentence that a person forgot or replaced with a statement, by the id of the statement.

    """

    texts: list[Text]
    by_persons: list[UUID]
    by_chat: list[UUID]
    forgotten: dict[UUID, str]


@st.composite
def said(draw: st.DrawFn) -> Said:
    """Statements, and what is known about them."""
    found = [one._replace(content=one.content and draw(st.sampled_from(SENTENCES))) for one in draw(texts())]
    by_persons, by_chat = ([one.statement_id for one in found if draw(st.booleans())] for _ in range(2))
    decided = [one.statement_id for one in found if one.is_set and draw(st.booleans())]
    return Said(found, by_persons, by_chat, {one: draw(st.sampled_from(SENTENCES)) for one in decided})


async def fill_all(connection: Connection, scope: ScopeKey, said: Said) -> None:
    """Insert the statements, what is known about them, and the lines of the chat that learns."""
    await fill(connection, scope, said.texts)
    await connection.execute(FILL_LINES, *LINE, FORMER_LINE)
    await connection.execute(WRITE_BY_PERSONS, scope.owner_key, said.by_persons)
    await connection.execute(TEACH_BY_CHAT, scope.owner_key, said.by_chat, *LINE, FORMER_LINE)
    for statement_id, sentence in said.forgotten.items():
        await connection.execute(FORGET, scope.owner_key, statement_id, hash_forgotten([sentence]))


async def judge_slowly(
    db_session: DbSession, scope: ScopeKey, said: Said, sentence: str, limits: MemorySettings, back: list[UUID]
) -> Outcome:
    """What becomes of a sentence, after all memories of the scope were judged and all texts compared.

    `back` are the ids of the memories that the sentences before it brought back from the archive, in this order. If the
    sentence brings one back, its id is added.
    """
    found = said.texts
    memories = await list_of_scope(db_session, scope, keeping_of(limits, NOON), Choice())
    gone = [Known[UUID | Forgotten](Forgotten(key), text, is_forgotten=True) for key, text in list_forgotten(found)]
    by_id = {one.memory_id: one for one in memories}
    kept = {one.memory_id: one for one in sorted(memories, key=age_of) if not one.archived}
    kept |= {one: by_id[one] for one in back if one not in kept}
    known = [Known[UUID | Forgotten](one.memory_id, one.content, one.origin == "person") for one in kept.values()]
    verdict = compare(sentence, [*gone, *known], threshold=limits.dedupe_threshold)
    if isinstance(verdict.id, Forgotten):
        return verdict.id
    if verdict.id and verdict.outcome == "duplicate":
        return Taught(verdict.id, kept[verdict.id].statement_id)
    equal = [one for one in memories if one.archived and not one.archived_by_person and is_same(one.content, sentence)]
    if equal:
        faded = max(equal, key=lambda one: (one.order_key, one.memory_id))
        back.append(faded.memory_id)
        return Taught(faded.memory_id, faded.statement_id)
    settled = [one for one in found if one.content and is_same(one.content, sentence) and is_settled(one, found)]
    if settled:
        newest = max(settled, key=lambda one: (-one.age_days, one.statement_id))
        return Taught(newest.key, newest.statement_id)
    hashed = [said.forgotten[one] for one in list_deciding(found) if one in said.forgotten]
    written = [sentence, *([kept[verdict.id].content] if verdict.id else [])]
    if any(is_same(one, other) for one in hashed for other in written):
        return Forgotten(None)
    return verdict.id


def list_deciding(found: list[Text]) -> list[UUID]:
    """The newest live statement of each memory."""
    live = [[one for one in found if one.key == key and one.is_live] for key in KEYS]
    return [max(of_key, key=lambda one: (-one.age_days, one.statement_id)).statement_id for of_key in live if of_key]


def list_forgotten(found: list[Text]) -> list[tuple[UUID, str]]:
    """All texts of the memories whose newest live statement has no text, sorted by the memory."""
    forgotten = list[tuple[UUID, str]]()
    for key in KEYS:
        live = [one for one in found if one.key == key and one.is_live]
        if live and max(live, key=lambda one: (-one.age_days, one.statement_id)).content is None:
            forgotten += [(key, one.content) for one in found if one.key == key and one.content]
    return forgotten


def age_of(memory: Memory) -> tuple[object, ...]:
    return memory.learnt_at, memory.statement_id


def is_same(one: str, other: str) -> bool:
    return fold(one) == fold(other)


def is_settled(one: Text, found: list[Text]) -> bool:
    """Whether a person put a memory into the archive, or replaced or forgot this text of it."""
    later = [(-other.age_days, other.statement_id) for other in found if other.key == one.key and other.is_set]
    return one.archived is True or any(age > (-one.age_days, one.statement_id) for age in later)


CATS = Text(KEYS[0], UUID(int=100), "Mira has two cats.", 0.5, False, None, 20, False, [(True, False, 20)])
LIMITS = MemorySettings(dedupe_threshold=0.3, forget_below=None)
FADING = MemorySettings(dedupe_threshold=0.3, forget_below=0.3)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(said(), contents, limits)
@example(Said([CATS], [CATS.statement_id], [], {}), ["Mira has three cats."], LIMITS)
@example(Said([CATS], [], [CATS.statement_id], {}), ["Mira has two cats."], LIMITS)
@example(Said([CATS], [], [], {}), ["Mira has two cats.", "Mira has three cats."], FADING)
async def test_sentences_become_what_the_reference_says(
    connection: Connection, said: Said, sentences: list[str], limits: MemorySettings
) -> None:
    scope = ScopeKey("user", "x", uuid4())
    head = cast("Head", SimpleNamespace(line=LINE))
    writing = connection.transaction()
    await writing.start()
    try:
        await fill_all(connection, scope, said)
        db_session = cast("DbSession", SimpleNamespace(raw=connection))
        known = await read_known(db_session, head, scope, None, limits, NOON, sentences)
        assert all(Candidates(sentences, limits.dedupe_threshold).has(one.content) for one in known.gone)
        back = list[UUID]()
        for sentence in sentences:
            outcome = known.compare(sentence, limits.dedupe_threshold)
            became = outcome.memory_id if isinstance(outcome, Held) else outcome
            assert became == await judge_slowly(db_session, scope, said, sentence, limits, back)
            if isinstance(outcome, Taught):
                known.bring_back(outcome)
    finally:
        await writing.rollback()


written = st.text(st.sampled_from("abcABC éßİı12 .,-_\u0307\u3000猫が"), max_size=30)


@given(st.lists(written, min_size=1, max_size=3), written, st.floats(0, 1))
@example(["straße"], "STRASSE", 1.0)
@example(["a b"], "a b c", similarity("a b", "a b c"))
@example(["猫が好き、犬も好き。" * 5], "猫が好き、犬も好きだ。" * 5, 0.5)
def test_candidates_are_all_that_can_be_found(sentences: list[str], text: str, threshold: float) -> None:
    candidates = Candidates(sentences, threshold)
    found = any(similarity(one, text) > threshold or is_same(one, text) for one in sentences)
    assert candidates.has(text) == found
    assert candidates.is_equal(text) == any(is_same(one, text) for one in sentences)


def test_no_whole_text_without_spaces_is_kept() -> None:
    candidates = Candidates(["猫が好き、犬も好き。"], 0.85)
    texts = [f"{'猫が窓辺で眠り、犬は庭を走る。' * 5}{number}" for number in range(1_000)]
    tracemalloc.start()
    try:
        assert not any(candidates.has(text) for text in texts)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes <= 50_000
