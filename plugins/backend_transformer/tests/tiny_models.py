"""Tiny models in CTranslate2's format, and the same models in plain numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ctranslate2.specs import common_spec, transformer_spec
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

Array = npt.NDArray[Any]
SPECIAL = ["<unk>", "<s>", "</s>"]
UNKNOWN, START, END = range(3)
TOKENS = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "he", "Ġw"]
HEADS = 4


def write_tokenizer(folder: Path, starts: bool = True, tokens: Sequence[str] = TOKENS) -> Tokenizer:
    """Write a tokenizer of bytes, which puts <s> before a text if `starts`."""
    merges = [("h", "e"), ("Ġ", "w")] if "he" in tokens else []
    tokenizer = Tokenizer(
        models.BPE(
            {token: number for number, token in enumerate(tokens)}, merges, unk_token="<unk>"
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    if starts:
        tokenizer.post_processor = processors.TemplateProcessing(
            "<s> $A", "<s> $A <s> $B:1", [("<s>", START)]
        )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


class Weights:
    """Sets random weights in a spec."""

    def __init__(self, seed: int, width: int) -> None:
        self.random = np.random.default_rng(seed)
        self.width = width

    def matrix(self, *shape: int, scale: float = 0.3) -> Array:
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def linear(self, spec: Any, out: int, into: int) -> None:
        spec.weight, spec.bias = self.matrix(out, into), self.matrix(out)

    def norm(self, spec: Any) -> None:
        spec.gamma, spec.beta = 1 + self.matrix(self.width), self.matrix(self.width)

    def attention(self, spec: Any, own: bool = True) -> None:
        sizes = [3, 1] if own else [1, 2, 1]
        for linear, parts in zip(spec.linear, sizes, strict=True):
            self.linear(linear, parts * self.width, self.width)
        self.norm(spec.layer_norm)

    def feed_forward(self, spec: Any) -> None:
        self.norm(spec.layer_norm)
        self.linear(spec.linear_0, 2 * self.width, self.width)
        self.linear(spec.linear_1, self.width, 2 * self.width)


def _save(spec: Any, folder: Path, quantization: str | None) -> None:
    spec.validate()
    spec.optimize(quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def write_decoder(
    folder: Path,
    seed: int = 0,
    width: int = 32,
    positions: int = 96,
    layers: int = 2,
    quantization: str | None = None,
) -> dict[str, Any]:
    """Write a decoder like GPT-2 with random weights and return them."""
    weights = Weights(seed, width)
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        layers, HEADS, pre_norm=True, activation=common_spec.Activation.GELUTanh
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = weights.matrix(len(TOKENS), width, scale=1)
    decoder.position_encodings.encodings = weights.matrix(positions, width, scale=1)
    for layer in decoder.layer:
        weights.attention(layer.self_attention)
        weights.feed_forward(layer.ffn)
    weights.norm(decoder.layer_norm)
    weights.linear(decoder.projection, len(TOKENS), width)
    spec.register_vocabulary(TOKENS)
    kept = dict(spec.variables())
    _save(spec, folder, quantization)
    return kept


def write_speaker(
    folder: Path, tokens: Sequence[int], prompt_length: int = 3, positions: int = 64
) -> None:
    """Write a decoder that generates `tokens` and ends, after any prompt of `prompt_length` tokens.

    Its next token only depends on the position.
    """
    script = [END] * positions
    script[prompt_length - 1 : prompt_length - 1 + len(tokens)] = tokens
    width = (positions + HEADS - 1) // HEADS * HEADS
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(1, HEADS, pre_norm=True)
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = np.zeros((len(TOKENS), width), np.float32)
    decoder.position_encodings.encodings = 10 * np.eye(positions, width, dtype=np.float32)
    silent = Weights(0, width)
    silent.matrix = lambda *shape, **_: np.zeros(shape, np.float32)  # type: ignore[method-assign]
    for layer in decoder.layer:
        silent.attention(layer.self_attention)
        silent.feed_forward(layer.ffn)
    silent.norm(decoder.layer_norm)
    decoder.projection.weight = np.zeros((len(TOKENS), width), np.float32)
    decoder.projection.weight[script, range(positions)] = 1
    spec.register_vocabulary(TOKENS)
    _save(spec, folder, None)


def write_encoder(
    folder: Path, seed: int = 0, width: int = 32, positions: int = 48, pooler: bool = True
) -> dict[str, Any]:
    """Write an encoder like BERT with random weights and return them."""
    weights = Weights(seed, width)
    encoder = transformer_spec.TransformerEncoderSpec(
        2, HEADS, pre_norm=False, activation=common_spec.Activation.GELU, layernorm_embedding=True,
        num_source_embeddings=2, embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )  # fmt: skip
    spec = transformer_spec.TransformerEncoderModelSpec(encoder, pooling_layer=pooler)
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = weights.matrix(len(TOKENS), width, scale=1)
    encoder.embeddings[1].weight = weights.matrix(2, width, scale=1)
    encoder.position_encodings.encodings = weights.matrix(positions, width, scale=1)
    weights.norm(encoder.layernorm_embedding)
    for layer in encoder.layer:
        weights.attention(layer.self_attention)
        weights.feed_forward(layer.ffn)
    if pooler:
        weights.linear(spec.pooler_dense, width, width)
    spec.register_vocabulary(TOKENS)
    kept = dict(spec.variables())
    _save(spec, folder, None)
    return kept


def write_translator(
    folder: Path, seed: int = 0, width: int = 32, positions: int = 64, start: str | None = "<s>"
) -> dict[str, Any]:
    """Write an encoder-decoder model with random weights and return them."""
    weights = Weights(seed, width)
    spec = transformer_spec.TransformerSpec.from_config((1, 1), HEADS, pre_norm=True)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = False
        side.position_encodings.encodings = weights.matrix(positions, width, scale=1)
        weights.norm(side.layer_norm)
        for layer in side.layer:
            weights.attention(layer.self_attention)
            weights.feed_forward(layer.ffn)
    weights.attention(spec.decoder.layer[0].attention, own=False)
    spec.encoder.embeddings[0].weight = weights.matrix(len(TOKENS), width, scale=1)
    spec.decoder.embeddings.weight = weights.matrix(len(TOKENS), width, scale=1)
    weights.linear(spec.decoder.projection, len(TOKENS), width)
    spec.config.decoder_start_token = start
    spec.register_source_vocabulary(TOKENS)
    spec.register_target_vocabulary(TOKENS)
    kept = dict(spec.variables())
    _save(spec, folder, None)
    return kept


class Plain:
    """A model in plain numpy, one text at a time."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.weights = {
            name: np.asarray(value, np.float64)
            for name, value in weights.items()
            if not isinstance(value, (str, bool))
        }

    def linear(self, name: str, x: Array) -> Array:
        return x @ self.weights[f"{name}/weight"].T + self.weights[f"{name}/bias"]

    def norm(self, name: str, x: Array) -> Array:
        centered = x - x.mean(-1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def attention(
        self, name: str, x: Array, memory: Array | None = None, causal: bool = False
    ) -> Array:
        if memory is None:
            queries, keys, values = np.split(self.linear(f"{name}/linear_0", x), 3, axis=-1)
        else:
            queries = self.linear(f"{name}/linear_0", x)
            keys, values = np.split(self.linear(f"{name}/linear_1", memory), 2, axis=-1)
        q, k, v = (np.stack(np.split(part, HEADS, axis=-1)) for part in (queries, keys, values))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        heads = np.concatenate(list(softmax(scores) @ v), axis=-1)
        return self.linear(f"{name}/linear_{1 if memory is None else 2}", heads)

    def pre_norm_layers(
        self, scope: str, x: Array, act: Any, causal: bool, memory: Array | None = None
    ) -> Array:
        number = 0
        while f"{scope}/layer_{number}/ffn/linear_0/weight" in self.weights:
            name = f"{scope}/layer_{number}"
            x = x + self.attention(
                f"{name}/self_attention",
                self.norm(f"{name}/self_attention/layer_norm", x),
                None,
                causal,
            )
            if memory is not None:
                x = x + self.attention(
                    f"{name}/attention", self.norm(f"{name}/attention/layer_norm", x), memory
                )
            hidden = act(
                self.linear(f"{name}/ffn/linear_0", self.norm(f"{name}/ffn/layer_norm", x))
            )
            x = x + self.linear(f"{name}/ffn/linear_1", hidden)
            number += 1
        return self.norm(f"{scope}/layer_norm", x)

    def decoder_scores(self, token_ids: Sequence[int]) -> Array:
        """Return the scores of the token after `token_ids`."""
        x = self.weights["decoder/embeddings/weight"][list(token_ids)]
        x = x + self.weights["decoder/position_encodings/encodings"][: len(token_ids)]
        return self.linear(
            "decoder/projection", self.pre_norm_layers("decoder", x, gelu_tanh, causal=True)[-1]
        )

    def translator_scores(self, source: Sequence[int], token_ids: Sequence[int]) -> Array:
        x = self.weights["encoder/embeddings_0/weight"][list(source)]
        memory = self.pre_norm_layers(
            "encoder",
            x + self.weights["encoder/position_encodings/encodings"][: len(source)],
            relu,
            causal=False,
        )
        y = self.weights["decoder/embeddings/weight"][list(token_ids)]
        y = y + self.weights["decoder/position_encodings/encodings"][: len(token_ids)]
        return self.linear(
            "decoder/projection",
            self.pre_norm_layers("decoder", y, relu, causal=True, memory=memory)[-1],
        )

    def encoder_states(
        self, token_ids: Sequence[int], segments: Sequence[int] | None = None
    ) -> Array:
        x = self.weights["encoder/embeddings_0/weight"][list(token_ids)]
        x = x + self.weights["encoder/embeddings_1/weight"][list(segments or [0] * len(token_ids))]
        x = x + self.weights["encoder/position_encodings/encodings"][: len(token_ids)]
        x = self.norm("encoder/layernorm_embedding", x)
        for number in range(2):
            name = f"encoder/layer_{number}"
            x = self.norm(
                f"{name}/self_attention/layer_norm", x + self.attention(f"{name}/self_attention", x)
            )
            hidden = gelu(self.linear(f"{name}/ffn/linear_0", x))
            x = self.norm(f"{name}/ffn/layer_norm", x + self.linear(f"{name}/ffn/linear_1", hidden))
        return x

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """Return the most probable next tokens sequentially until the text ends."""
        token_ids = list(prompt)
        while len(token_ids) < len(prompt) + count:
            best = int(np.argmax(self.decoder_scores(token_ids)))
            if best == END:
                break
            token_ids.append(best)
        return token_ids[len(prompt) :]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(x: Array) -> Array:
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu(x: Array) -> Array:
    from math import erf

    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def token_ids_of(text: str) -> list[int]:
    """Return the token IDs of a text without merges."""
    return [
        TOKENS.index(token)
        for token, _ in pre_tokenizers.ByteLevel(False, use_regex=False).pre_tokenize_str(text)
        for token in token
    ]
