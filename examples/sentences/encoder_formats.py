"""The encoder as an ONNX model, as a `torch.export` program, for OpenVINO, and for CTranslate2.

The numbers of texts and tokens are variable dimensions in all formats.
"""

from __future__ import annotations

from pathlib import Path

import torch

from examples.sentences.encoder import Encoder
from examples.sentences.weights import package_file

EXAMPLE = (torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64))
_OPEN = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens", max=512)}
OPEN = {"input_ids": _OPEN, "attention_mask": _OPEN}


def write_onnx(folder: Path, encoder: Encoder) -> None:
    """Write `model.onnx`; needs onnx and onnxscript."""
    program = torch.onnx.export(
        encoder, EXAMPLE, dynamic_shapes=OPEN, input_names=list(OPEN),
        output_names=["sentence_embedding"],
        dynamo=True, verbose=False,
    )  # fmt: skip
    program.save(folder / "model.onnx")


def write_torch(folder: Path, encoder: Encoder) -> None:
    """Write `model.pt2`."""
    torch.export.save(
        torch.export.export(encoder, EXAMPLE, dynamic_shapes=OPEN), folder / "model.pt2"
    )


def write_openvino(folder: Path, encoder: Encoder) -> None:
    """Write `model.xml` and `model.bin`, converted from PyTorch; weights stay FP32."""
    import openvino

    model = openvino.convert_model(encoder, example_input=EXAMPLE)
    for port, name in zip(
        [*model.inputs, *model.outputs], [*OPEN, "sentence_embedding"], strict=True
    ):
        port.set_names({name})  # replaces the numbers of the traced graph
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)


def write_transformer(folder: Path, _encoder: Encoder) -> None:
    """Write the folder `model` from the checkpoint; needs ctranslate2 and transformers."""
    from ctranslate2.converters import TransformersConverter

    checkpoint = package_file("model.safetensors").parent
    TransformersConverter(str(checkpoint), copy_files=["tokenizer.json"]).convert(
        str(folder / "model"), force=True
    )
