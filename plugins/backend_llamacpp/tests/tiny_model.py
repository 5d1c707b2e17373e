"""Writes a GGUF file with a model of random weights: each byte is a token."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, CONTEXT = 32, 64, 512
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
BYTES_AT = 3  # the token of the byte 0


def write_model(path: Path, *, has_space: bool = True) -> None:
    """Write a model of the Llama architecture that knows no words.

    Without a token for the space, it cannot write one.
    """
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 2)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens.append("\u2581" if has_space else "_")
    kinds = [
        gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL,
        *[gguf.TokenType.BYTE] * 256, gguf.TokenType.NORMAL,
    ]  # fmt: skip
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    random = np.random.default_rng(7)

    def add(name: str, *shape: int) -> None:
        values = random.standard_normal(shape) if len(shape) > 1 else np.ones(shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))

    add("token_embd", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}", WIDTH, WIDTH)
    add("blk.0.attn_norm", WIDTH)
    add("blk.0.ffn_norm", WIDTH)
    add("blk.0.ffn_gate", INNER, WIDTH)
    add("blk.0.ffn_up", INNER, WIDTH)
    add("blk.0.ffn_down", WIDTH, INNER)
    add("output_norm", WIDTH)
    add("output", len(tokens), WIDTH)
    _finish(writer)


def write_adapter(path: Path, strength: float) -> None:
    """Write a LoRA adapter that changes what the model says."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 1.0)
    random = np.random.default_rng(9)
    for side, shape in (("lora_a", (1, WIDTH)), ("lora_b", (WIDTH, 1))):
        values = random.standard_normal(shape) * strength
        writer.add_tensor(f"blk.0.attn_output.weight.{side}", values.astype(np.float32))
    _finish(writer)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
