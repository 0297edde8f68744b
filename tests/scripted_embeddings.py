"""A scripted embedding server: OpenAI's embeddings on loopback, over real HTTP.

    async with ScriptedEmbeddings(dimension=64) as server:
        server.script(refuses(503), embeds([[1, 0]]))
        server.dimension = 32   # from now on, it is another model
        gate = server.hold()    # it is slow

Without a script, texts get vectors that depend on their words alone: texts that share words are near to each other.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.scripted_model import Reply, Request, ScriptedModel, sends


def embeds(vectors: Sequence[Sequence[float]], *, tokens: int | None = None, shuffled: bool = False) -> Reply:
    """The answer with these vectors, in the order of the texts; `shuffled` sends the last one first."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    answer: dict[str, Any] = {"object": "list", "model": "scripted-1", "data": data[::-1] if shuffled else data}
    if tokens is not None:
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return sends(json.dumps(answer).encode(), "application/json")


def hash_words(text: str, dimension: int) -> list[float]:
    """A vector of the words of a text and, with less weight, of their beginnings."""
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        for feature, weight in ((word, 1.0), (word[:4], 0.5)):
            digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "big") % dimension] += weight if digest[4] % 2 else -weight
    return vector


class ScriptedEmbeddings(ScriptedModel):
    """The server; it listens from `async with` on.

    Attributes:
        dimension: The length of the vectors, if a request asks for no other.

    """

    def __init__(self, *, dimension: int = 64, port: int = 0, delay_s: float = 0.0) -> None:
        super().__init__(port=port, delay_s=delay_s)
        self.dimension = dimension
        self.otherwise = self._embed

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request so far."""
        return [request["input"] for request in self.requests]

    def _embed(self, request: Request) -> Reply:
        texts, dimension = request["input"], request.get("dimensions", self.dimension)
        return embeds([hash_words(text, dimension) for text in texts], tokens=sum(len(text.split()) for text in texts))
