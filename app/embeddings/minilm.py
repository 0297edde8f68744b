"""The model all-MiniLM-L6-v2, computed with numpy: BERT with six layers, then the mean over all tokens.

From “BERT: Pre-training of Deep Bidirectional Transformers” (Devlin et al., 2019) and the files of the model. The
weights are mapped into memory, not read: processes share them, and parts that no text has needed yet, such as the
vectors of rare words, take up no memory.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Floats = NDArray[np.float32]

DIMENSION = 384
MAX_TOKENS = 256
"""The maximum length of a window, with the two tokens that mark its beginning and end. The model was published with
this limit."""

_LAYERS, _HEADS = 6, 12
_EPSILON = 1e-12
_CHUNK = 16_384
"""The activation is computed for this many numbers at a time, so that they stay in the processor's cache."""


class MiniLm:
    """The weights, from `model.safetensors` in a directory. Raises OSError."""

    def __init__(self, directory: Path) -> None:
        weights = _map_weights(directory / "model.safetensors")
        self._words = weights["embeddings.word_embeddings.weight"]
        # BERT adds three vectors for each token: those of its word, its position and its segment. Here, all tokens are
        # in the first segment, so the vector of this segment is added to those of the positions once.
        self._places = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        self._places = self._places + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]
        self._layers = [_Layer(weights, f"encoder.layer.{number}.") for number in range(_LAYERS)]

    def embed(self, windows: Sequence[Sequence[int]]) -> Floats:
        """Return for each window the mean of its tokens' vectors, not normalised. The shape is (windows, 384).

        Args:
            windows: The token ids of each window, at most `MAX_TOKENS`, including its begin and end tokens.

        """
        longest = max(map(len, windows))
        ids = np.zeros((len(windows), longest), np.intp)
        is_token = np.zeros((len(windows), longest), np.float32)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            is_token[row, : len(window)] = 1
        hidden = _normalise(self._words[ids] + self._places[:longest], *self._norm)
        bias = None if is_token.all() else ((1 - is_token) * np.float32(-1e9))[:, None, None, :]
        for layer in self._layers:
            hidden = layer.apply(hidden, bias)
        total = np.einsum("wtd,wt->wd", hidden, is_token)
        return np.asarray(total / is_token.sum(axis=1, keepdims=True), np.float32)


class _Layer:
    """One layer: attention, then a feed-forward network that is applied to each token.

    The result of each of the two is added to its input, and the sum is normalised.
    """

    def __init__(self, weights: dict[str, Floats], prefix: str) -> None:
        def linear(name: str) -> tuple[Floats, Floats]:
            return weights[f"{prefix}{name}.weight"].T, weights[f"{prefix}{name}.bias"]

        def norm(name: str) -> tuple[Floats, Floats]:
            return weights[f"{prefix}{name}.LayerNorm.weight"], weights[f"{prefix}{name}.LayerNorm.bias"]

        self._query, self._key, self._value = (linear(f"attention.self.{name}") for name in ("query", "key", "value"))
        self._attended, self._attended_norm = linear("attention.output.dense"), norm("attention.output")
        self._wide, self._narrow, self._norm = linear("intermediate.dense"), linear("output.dense"), norm("output")

    def apply(self, hidden: Floats, bias: Floats | None) -> Floats:
        """Return the vectors of the next layer: (windows, tokens, 384). `bias` is very negative at padding tokens."""
        windows, tokens, width = hidden.shape
        flat = hidden.reshape(-1, width)

        def heads(linear: tuple[Floats, Floats]) -> Floats:
            return _apply(linear, flat).reshape(windows, tokens, _HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = heads(self._query), heads(self._key), heads(self._value)
        scores: Floats = query @ key.transpose(0, 1, 3, 2)
        scores *= np.float32(1 / math.sqrt(width // _HEADS))
        if bias is not None:
            scores += bias
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, width)
        flat = _normalise(_apply(self._attended, attended) + flat, *self._attended_norm)
        wide = _apply(self._wide, flat)
        _activate(wide)
        flat = _normalise(_apply(self._narrow, wide) + flat, *self._norm)
        return flat.reshape(windows, tokens, width)


def _apply(linear: tuple[Floats, Floats], vectors: Floats) -> Floats:
    made: Floats = vectors @ linear[0]
    made += linear[1]
    return made


def _normalise(vectors: Floats, scale: Floats, shift: Floats) -> Floats:
    """Return each vector with mean 0 and variance 1, then scaled and shifted."""
    vectors -= vectors.mean(axis=-1, keepdims=True)
    variance = np.einsum("...d,...d->...", vectors, vectors)[..., None] / np.float32(vectors.shape[-1])
    vectors /= np.sqrt(variance + np.float32(_EPSILON))
    vectors *= scale
    vectors += shift
    return vectors


def _activate(numbers: Floats) -> None:
    """Apply GELU in place: x Φ(x).

    Φ is computed from an approximation of erf with an error below 1.5e-7 (Abramowitz and Stegun 7.1.26).
    """
    flat = numbers.reshape(-1)
    for first in range(0, flat.size, _CHUNK):
        x = flat[first : first + _CHUNK]
        z = np.abs(x)
        z *= np.float32(math.sqrt(0.5))
        t = 1 / (1 + np.float32(0.3275911) * z)
        tail = t * np.float32(1.061405429)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(coefficient)
            tail *= t
        np.square(z, out=z)
        np.negative(z, out=z)
        np.exp(z, out=z)
        tail *= z  # 1 - erf(|x| / √2)
        tail *= np.float32(0.5)
        # Φ(x) is `tail` for negative x, and 1 - tail otherwise.
        x *= np.where(x < 0, tail, 1 - tail)


def _map_weights(path: Path) -> dict[str, Floats]:
    """Return the tensors of 32-bit floats in a safetensors file, by name.

    The format: the length of the header in 8 bytes, the header as JSON, the numbers.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = orjson.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r", offset=8 + length)
    return {
        name: np.asarray(data[slice(*tensor["data_offsets"])]).view(np.float32).reshape(tensor["shape"])
        for name, tensor in header.items()
        if tensor.get("dtype") == "F32"
    }
