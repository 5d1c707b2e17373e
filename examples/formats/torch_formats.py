"""The digits model in formats of PyTorch: TorchScript, a `torch.export` program, and ONNX."""

from __future__ import annotations

from pathlib import Path

import torch

from examples.formats.digits import PIXELS, Weights
from examples.formats.network import network_of

EXAMPLE = (torch.zeros(2, PIXELS),)
OPEN_BATCH = {"image": {0: torch.export.Dim("batch")}}


def write_torchscript(folder: Path, weights: Weights) -> None:
    """Write `model.pt`."""
    torch.jit.script(network_of(weights)).save(folder / "model.pt")


def write_exported(folder: Path, weights: Weights) -> None:
    """Write `model.pt2` with a variable batch dimension."""
    program = torch.export.export(network_of(weights), EXAMPLE, dynamic_shapes=OPEN_BATCH)
    torch.export.save(program, folder / "model.pt2")


def write_onnx(folder: Path, weights: Weights) -> None:
    """Write `model.onnx` with a variable batch dimension; needs onnx and onnxscript."""
    program = torch.onnx.export(
        network_of(weights), EXAMPLE, dynamic_shapes=OPEN_BATCH, input_names=["image"],
        output_names=["scores"],
        dynamo=True, verbose=False,
    )  # fmt: skip
    program.save(folder / "model.onnx")
