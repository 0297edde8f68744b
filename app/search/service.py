"""Searches what a line knows: the candidates are read in one statement, and ranked by pure functions."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.characters import word_spoken
from app.chats.settings import ChatSettings
from app.embeddings.scale import scale_similarity
from app.kit.db import Connection
from app.layers.documents import Document, Fading
from app.layers.layer import Layer
from app.passages.keys import list_wanted
from app.passages.words import list_patterns
from app.search.choice import Hit
from app.search.known import MAX_LIKELY, KnownTexts, Viewed, find_remembered, remember_texts
from app.search.likely import MAX_NEAR_TEXTS
from app.search.meant import find_words_meant
from app.search.queries import QueryVector, Question, Texts, list_candidates
from app.search.ranking import Candidate, Scored, find_similarities, rank, weigh_strength
from app.search.statements import MAX_MESSAGE_TOKENS, Statements, write_search
from app.search.stems import Stem, stemmer_of, with_stems

MOST_CHARS_INLINE = 8_000
"""More text than this is ranked in a thread, because it would block the event loop for some milliseconds."""

_statements: dict[bool, Statements] = {}  # for the layers that this process searches; by `with_vectors`
_kinds_remembered: list[str] = []  # the kinds of those texts of these layers that recall remembers
_sharing: list[Callable[[ChatSettings], bool]] = []  # `Layer.shares_texts` of these layers
_names_of_changes: list[str] = []  # the names of the changes of a line after which remembered texts can be outdated


class Searched(NamedTuple):
    """The line that is searched.

    Attributes:
        chat_key: The chat's key.
        line_id: The line.
        head_seq: The newest seq; if `before_seq` is given, the seq before it.
        character: The character whose prompt is made, if known.
        speakers: For each role, the name that a message gets if it has none of its own.
        before_seq: Only what was known before this message is found; None finds all.
        only_chat: Whether only what the chat itself knows is found, and nothing of wider scopes.
        fading: How the age of a memory affects the search (`Fading`).
        language: The language of the chat (BCP 47), if known; words are compared by its stems (`stems.py`).
        with_shared: Whether the chat may see texts of the user's other chats (`may_see_others`).

    """

    chat_key: UUID
    line_id: UUID
    head_seq: int
    character: str | None
    speakers: Mapping[str, str]
    before_seq: int | None = None
    only_chat: bool = False
    fading: Fading = "archives"
    language: str | None = None
    with_shared: bool = False

    @property
    def stem(self) -> Stem:
        """The function that stems words of the chat's language; None if there is none."""
        return stemmer_of(self.language)

    def locate(self, seq: int) -> float:
        """Return where a message is on the line, from 0 to 1 for the newest one."""
        return seq / self.head_seq if self.head_seq else 0.0


def search_layers(layers: Sequence[Layer]) -> None:
    """Include the texts of these layers in the searches of this process. Called by `app/registry.py`."""
    _statements.update(
        {with_vectors: write_search(layers, with_vectors=with_vectors) for with_vectors in (False, True)}
    )
    _sharing[:] = [layer.shares_texts for layer in layers]
    remembered = [layer for layer in layers if layer.documents_change_with]
    _kinds_remembered[:] = [kind for layer in remembered for kind in layer.document_kinds]
    _names_of_changes[:] = list(dict.fromkeys(name for layer in remembered for name in layer.documents_change_with))


def may_see_others(settings: ChatSettings) -> bool:
    """Return whether a chat with these settings may see texts of the user's other chats (`Layer.shared_documents`)."""
    return any(shares_texts(settings) for shares_texts in _sharing)


def list_changes() -> Sequence[str]:
    """Return the names of those changes of a line after which the texts that recall remembers can be outdated."""
    return _names_of_changes


def statements_in_use(*, with_vectors: bool = False) -> Statements:
    """Return the SQL statements of searches. Raises RuntimeError if no layers are registered yet."""
    if not _statements:
        raise RuntimeError("no layers are registered for searches: import app.registry first")
    return _statements[with_vectors]


class Found(NamedTuple):
    """What a search found, not ranked yet.

    Attributes:
        texts: Messages and texts of layers.
        known: Texts that are remembered, each with its cosine; None if it has none.

    """

    texts: Texts
    known: Sequence[tuple[Document, float | None]] = ()


async def search(
    connection: Connection,
    line: Searched,
    terms: Sequence[str],
    meaning: QueryVector | None = None,
    *,
    now: datetime,
    names: Sequence[str],
) -> list[Hit]:
    """Return the texts of a line that have one of the terms, a similar word or a similar meaning, best first.

    Misspelt terms are corrected (`meant.py`). A term that is one of `names`, the names of the chat's characters and of
    its user, is not corrected.
    """
    found = await find(connection, line, terms, meaning, now=now)
    meant = await find_words_meant(
        connection,
        (line.chat_key, line.line_id),
        terms,
        found.texts.rows,
        language=line.language,
        names=names,
        speakers=line.speakers,
    )
    if meant:
        found = await find(connection, line, [*terms, *meant.values()], meaning, now=now)
    return await rank_found(found, line, terms, meant)


async def find(
    connection: Connection,
    line: Searched,
    terms: Sequence[str],
    meaning: QueryVector | None = None,
    *,
    now: datetime,
    kinds_left_out: Sequence[str] = (),
    left_out: Sequence[str] = (),
    most_tokens: int = MAX_MESSAGE_TOKENS,
    viewed: Viewed | None = None,
) -> Found:
    """Return the texts of a line that may have one of the terms or a similar word, for `rank_found`.

    With `meaning`, texts with a similar meaning are returned, too. Messages of the history are not searched.
    `kinds_left_out` and `left_out` are kinds and sources that are not searched either, nor are messages with more than
    `most_tokens`. With `viewed`, the texts of layers that change rarely are kept in this process (`known.py`), and are
    not read again as long as they are valid.
    """
    known = find_remembered(viewed, now) if viewed is not None else None
    words = with_stems(terms, line.stem)
    question = Question(
        line.chat_key,
        line.line_id,
        list_patterns(words),
        list_wanted(words),
        line.character,
        now,
        line.before_seq,
        [*kinds_left_out, *(_kinds_remembered if known is not None else ())],
        left_out,
        min(most_tokens, MAX_MESSAGE_TOKENS),
        _kinds_remembered if viewed is not None and known is None else (),
        line.fading,
        viewed is not None,
    )
    used = statements_in_use(with_vectors=meaning is not None)
    statement = used.shared_recall if line.with_shared else used.recall
    if line.only_chat:
        statement = used.own_recall
    texts = await list_candidates(connection, statement, question, meaning)
    if viewed is None:
        return Found(texts)
    if known is None:
        kinds = frozenset(_kinds_remembered)
        is_listed = [row["source"].partition(":")[0] in kinds for row in texts.rows]
        known = remember_texts(viewed, itertools.compress(texts.rows, is_listed), now)
        texts = texts._replace(rows=[row for row, listed in zip(texts.rows, is_listed, strict=True) if not listed])
    else:
        texts = texts._replace(total=texts.total + len(known.texts))
    return Found(texts, _choose_known(known, terms, line.stem, texts.similarities, frozenset(left_out)))


def _choose_known(
    known: KnownTexts,
    terms: Sequence[str],
    stem: Stem,
    similarities: Mapping[bytes, float],
    left_out: frozenset[str],
) -> list[tuple[Document, float | None]]:
    """Return the remembered texts with the most and the rarest terms, and those with the most similar meaning."""
    chosen = dict.fromkeys(known.find_likely(terms, MAX_LIKELY, left_out=left_out, stem=stem))
    chosen |= dict.fromkeys(known.find_near(similarities, MAX_NEAR_TEXTS, left_out=left_out))
    return [(known.texts[index], similarities.get(known.digests[index])) for index in chosen]


async def rank_found(
    found: Found, line: Searched, terms: Sequence[str], meant: Mapping[str, str] | None = None
) -> list[Hit]:
    """Return what `find` found, best first. Long texts are ranked in a thread.

    `meant` has for each misspelt term the word that is meant.
    """
    chars = sum(len(row["text"]) for row in found.texts.rows) + sum(len(one.text) for one, _ in found.known)
    if chars <= MOST_CHARS_INLINE:
        return _rank(found, line, terms, meant)
    return await asyncio.to_thread(_rank, found, line, terms, meant)


def _rank(found: Found, line: Searched, terms: Sequence[str], meant: Mapping[str, str] | None) -> list[Hit]:
    rows = found.texts.rows
    texts = {row["source"]: (row, word_spoken(row["text"], row["role"], row["name"], line.speakers)) for row in rows}
    similarities = find_similarities((row["source"], row["similarity"]) for row in rows)
    candidates = [
        Candidate(
            source,
            text,
            row["importance"],
            row["last_seq"],
            line.locate(row["last_seq"]),
            line.line_id if row["role"] else None,
            similarities.get(source),
        )
        for source, (row, text) in texts.items()
    ]
    candidates += [
        Candidate(one.source, one.text, one.importance, one.last_seq, line.locate(one.last_seq), similarity=similarity)
        for one, similarity in found.known
    ]
    if line.fading == "weighs":
        candidates = [
            replace(one, weight=weigh_strength(one.importance or 0.0)) if _fades(one.source) else one
            for one in candidates
        ]
    total, lowest = found.texts.total, found.texts.lowest
    ranked = rank(terms, candidates, total=total, stem=line.stem, lowest=lowest, meant=meant)
    documents = {one.source: one for one, _ in found.known} | {
        source: Document(source, text, row["first_seq"], row["last_seq"], row["category"])
        for source, (row, text) in texts.items()
    }
    cosines = {one.source: one.similarity for one in candidates}
    unrelated = found.texts.unrelated
    return [_hit(documents[one.source], one, _scale(cosines[one.source], unrelated)) for one in ranked]


def _fades(source: str) -> bool:
    return source.partition(":")[0] in _kinds_remembered


def _scale(cosine: float | None, unrelated: float | None) -> float | None:
    return None if cosine is None or unrelated is None else scale_similarity(cosine, unrelated)


def _hit(of: Document, scored: Scored, relatedness: float | None) -> Hit:
    return Hit(of.source, of.text, of.category, of.first_seq, of.last_seq, scored.score, scored.parts, relatedness)
