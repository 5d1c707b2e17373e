"""Inputs from a folder: one file per input, with its name."""

from __future__ import annotations

from pathlib import Path

from tritonpy_bench.inputs.shapes import Shapes, shape_of
from tritonpy_bench.inputs.tensor import InputTensor, from_bytes, from_values
from tritonpy_bench.options import BadUsage
from tritonpy_bench.target.facts import ModelFacts


def read_folder(folder: Path, facts: ModelFacts, given: Shapes) -> tuple[InputTensor, ...]:
    """Return one step: the bytes of each input's file, of strings its lines. Raises BadUsage for a file that is missing or of a wrong size."""
    tensors = []
    for tensor in facts.inputs:
        path = folder / tensor.name
        if not path.is_file():
            if tensor.optional:
                continue
            raise BadUsage(f"--input-data {folder}: there is no file '{tensor.name}' for the input of that name")
        shape = shape_of(tensor, given, facts.name)
        content = path.read_bytes()
        if tensor.datatype == "BYTES":
            tensors.append(from_values(tensor.name, "BYTES", shape, content.splitlines()))
        else:
            tensors.append(from_bytes(tensor.name, tensor.datatype, shape, content))
    return tuple(tensors)
