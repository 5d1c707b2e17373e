"""Inputs from a folder with one file per input, named as the input."""

from __future__ import annotations

from pathlib import Path

from tritonpy_load_generator.inputs.shapes import Shapes, shape_of
from tritonpy_load_generator.inputs.tensor import InputTensor, from_bytes, from_values
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import ModelDescription


def read_folder(folder: Path, model: ModelDescription, given: Shapes) -> tuple[InputTensor, ...]:
    """Return one step: the bytes of each file, or its lines for strings.

    Raises BadUsage if a file is missing or has the wrong size.
    """
    tensors = []
    for tensor in model.inputs:
        path = folder / tensor.name
        if not path.is_file():
            if tensor.optional:
                continue
            raise BadUsage(
                f"--input-data {folder}: the file '{tensor.name}' for the input of that name is "
                "missing"
            )
        shape = shape_of(tensor, given, model.name)
        content = path.read_bytes()
        if tensor.datatype == "BYTES":
            tensors.append(from_values(tensor.name, "BYTES", shape, content.splitlines()))
        else:
            tensors.append(from_bytes(tensor.name, tensor.datatype, shape, content))
    return tuple(tensors)
