"""Makes the vectors of texts, part by part."""

import logging
from collections.abc import Hashable, Mapping
from typing import TypeVar

from app.embeddings.service import PROBE
from app.embeddings.vectors import format_halfvec
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.passages.parts import divide

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


async def embed_texts(embedder: TextEmbedder, texts: Mapping[Key, str]) -> list[tuple[Key, int, str]]:
    """Return (key, number of the part, its vector as text) of all parts of texts; blank texts have no parts.

    If the model refuses several texts, they are sent again in two halves. A text that is refused alone is sent once
    more, because another server may answer the second time. If it is refused again, it gets no vector. Raises
    ModelError if the model is unavailable. Also raises it if the model refuses even a harmless text, because then the
    fault is not in the texts.
    """
    made: list[tuple[Key, int, str]] = []
    waiting = [[(key, divide(text)) for key, text in texts.items() if text.strip()]]
    refused: list[Key] = []
    asked_again = set[Key]()
    while waiting:
        some = waiting.pop()
        parts = [(key, number, part) for key, of_text in some for number, part in enumerate(of_text)]
        if not parts:
            continue
        try:
            vectors = (await embedder.embed([part for _, _, part in parts])).vectors
        except ModelError as error:
            if error.curable:
                raise
            if len(some) > 1:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
                continue
            key = some[0][0]
            if key in asked_again:
                refused.append(key)
                continue
            if not asked_again and not made:
                await embedder.embed([PROBE])
            asked_again.add(key)
            waiting.append(some)
        else:
            made += [
                (key, number, format_halfvec(vector)) for (key, number, _), vector in zip(parts, vectors, strict=True)
            ]
    if refused:
        log.warning("the embedding model refuses %d texts, which get no vectors", len(refused))
    return made
