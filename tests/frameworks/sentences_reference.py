"""The sentence encoder in numpy, straight from the checkpoint: the reference for every format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
HEADS, LAYERS = 12, 6
_erf = np.vectorize(math.erf, otypes=[np.float64])


def embedding(tokens: list[int], weights: Mapping[str, Array]) -> Array:
    """Return the vector [384] of one text, of length 1; `tokens` includes the two special ids."""
    words, places, kinds = (
        weights[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    )
    hidden = _normed(
        words[tokens] + places[: len(tokens)] + kinds[0], weights, "embeddings.LayerNorm"
    )
    for number in range(LAYERS):
        hidden = _layer(hidden, weights, f"encoder.layer.{number}.")
    mean = hidden.mean(0)
    return mean / np.linalg.norm(mean)


def _layer(hidden: Array, weights: Mapping[str, Array], layer: str) -> Array:
    attended = _dense(
        _attended(hidden, weights, f"{layer}attention.self."),
        weights,
        f"{layer}attention.output.dense",
    )
    hidden = _normed(hidden + attended, weights, f"{layer}attention.output.LayerNorm")
    wide = _dense(hidden, weights, f"{layer}intermediate.dense")
    wide = wide * (1 + _erf(wide / math.sqrt(2))) / 2
    return _normed(
        hidden + _dense(wide, weights, f"{layer}output.dense"), weights, f"{layer}output.LayerNorm"
    )


def _attended(hidden: Array, weights: Mapping[str, Array], attention: str) -> Array:
    query, key, value = (
        _dense(hidden, weights, attention + part).reshape(len(hidden), HEADS, -1).swapaxes(0, 1)
        for part in ("query", "key", "value")
    )
    powers = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1]))
    return (powers / powers.sum(2, keepdims=True) @ value).swapaxes(0, 1).reshape(hidden.shape)


def _dense(hidden: Array, weights: Mapping[str, Array], name: str) -> Array:
    return hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normed(hidden: Array, weights: Mapping[str, Array], name: str) -> Array:
    centred = hidden - hidden.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
