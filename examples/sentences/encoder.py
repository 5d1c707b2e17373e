"""The sentence encoder all-MiniLM-L6-v2 in PyTorch, layer by layer."""

from __future__ import annotations

import re

import torch
from torch.nn import Embedding, LayerNorm, Linear, Module, ModuleList
from torch.nn.functional import gelu, normalize, scaled_dot_product_attention

from examples.sentences.weights import Weights

WIDTH, WIDE, HEADS, LAYERS = 384, 1536, 12, 6
WORDS, POSITIONS = 30522, 512
EPSILON = 1e-12
# names of the parts of a layer: in the checkpoint -> here
PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attended_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
OUTER = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "kinds",
    "embeddings.LayerNorm": "norm",
}


class Layer(Module):
    """Attention and two dense layers, each with a residual connection and normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (Linear(WIDTH, WIDTH) for _ in range(3))
        self.attended, self.attended_norm = Linear(WIDTH, WIDTH), LayerNorm(WIDTH, EPSILON)
        self.wide, self.narrow, self.norm = (
            Linear(WIDTH, WIDE),
            Linear(WIDE, WIDTH),
            LayerNorm(WIDTH, EPSILON),
        )

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the next state; `hidden` [batch, tokens, 384], `mask` [batch, 1, 1, tokens]."""
        query, key, value = (_by_head(part(hidden)) for part in (self.query, self.key, self.value))
        attended = scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(2)
        hidden = self.attended_norm(hidden + self.attended(attended))
        return self.norm(hidden + self.narrow(gelu(self.wide(hidden))))


class Encoder(Module):
    """Token ids and mask, int64 [batch, tokens] -> unit vectors, float32 [batch, 384]."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions, self.kinds = (
            Embedding(count, WIDTH) for count in (WORDS, POSITIONS, 2)
        )
        self.norm = LayerNorm(WIDTH, EPSILON)
        self.layers = ModuleList([Layer() for _ in range(LAYERS)])

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Encode, average over the unmasked tokens, and normalize."""
        positions = self.positions.weight[: input_ids.shape[1]]
        hidden = self.norm(self.words(input_ids) + self.kinds.weight[0] + positions)
        mask = (attention_mask != 0)[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        counts = attention_mask[:, :, None].to(hidden.dtype)
        return normalize((hidden * counts).sum(1) / counts.sum(1), dim=1)


def encoder_of(weights: Weights) -> Encoder:
    """Return the encoder with the checkpoint's weights, in inference mode."""
    encoder = Encoder()
    encoder.load_state_dict(
        {
            name: torch.from_numpy(value)
            for key, value in weights.items()
            if (name := _own_name(key))
        }
    )
    return encoder.eval()


def _by_head(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)


def _own_name(name: str) -> str | None:
    part, _, kind = name.rpartition(".")
    if part in OUTER:
        return f"{OUTER[part]}.{kind}"
    found = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", part)
    return (
        f"layers.{found[1]}.{PARTS[found[2]]}.{kind}" if found else None
    )  # the pooler is not used
