"""All inputs of a benchmark, made before the first request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonpy_load_generator.inputs.folder import read_folder
from tritonpy_load_generator.inputs.generated import random_tensor, zero_tensor
from tritonpy_load_generator.inputs.json_file import read_streams
from tritonpy_load_generator.inputs.shapes import Shapes, checked_shapes, shape_of
from tritonpy_load_generator.inputs.tensor import InputTensor, stack_batch
from tritonpy_load_generator.options import BadUsage, LoadOptions
from tritonpy_load_generator.target.metadata import ModelDescription

Step = tuple[InputTensor, ...]


@dataclass(frozen=True)
class Corpus:
    """The distinct inputs (`steps`), and their order in sequences (`streams`, by number)."""

    steps: tuple[Step, ...]
    streams: tuple[tuple[int, ...], ...]
    from_files: bool


def make_corpus(model: ModelDescription, options: LoadOptions) -> Corpus:
    """Make the inputs of a model. Equal options produce equal inputs.

    Raises BadUsage with the input's name and a hint.
    """
    if options.batch > 1 and not model.max_batch_size:
        raise BadUsage(f"model '{model.name}' does not support batching: use -b 1")
    given = checked_shapes(model, options.shape)
    streams, from_files = _streams(model, options, given)
    steps: list[Step] = []
    numbers: list[tuple[int, ...]] = []
    for stream in streams:
        numbers.append(tuple(range(len(steps), len(steps) + len(stream))))
        steps += [_with_batch(stream, index, model, options.batch) for index in range(len(stream))]
    return Corpus(tuple(steps), tuple(numbers), from_files)


def _streams(
    model: ModelDescription, options: LoadOptions, given: Shapes
) -> tuple[list[list[Step]], bool]:
    if options.input_data in {("random",), ("zero",)}:
        return [[_generated(model, options, given)]], False
    paths = [Path(text) for text in options.input_data]
    for path in paths:
        if not path.exists():
            raise BadUsage(
                f"--input-data {path}: no such file or folder (and it is neither 'random' nor "
                "'zero')"
            )
    found: list[list[Step]] = []
    for path in paths:
        found += (
            [[read_folder(path, model, given)]]
            if path.is_dir()
            else read_streams(path, model, given)
        )
    return found, True


def _generated(model: ModelDescription, options: LoadOptions, given: Shapes) -> Step:
    rng = np.random.default_rng(options.seed)
    zero = options.input_data == ("zero",)
    return tuple(
        zero_tensor(tensor, shape_of(tensor, given, model.name), options)
        if zero
        else random_tensor(tensor, shape_of(tensor, given, model.name), options, rng)
        for tensor in model.inputs
        if not tensor.optional or tensor.name in given
    )


def _with_batch(stream: Sequence[Step], index: int, model: ModelDescription, batch: int) -> Step:
    """Return a batch of a step and its successors, or, in a sequence, of the repeated step."""
    if not model.max_batch_size:
        return stream[index]
    members = [
        stream[index if model.sequence else (index + more) % len(stream)] for more in range(batch)
    ]
    names = [tensor.name for tensor in members[0]]
    if any([tensor.name for tensor in member] != names for member in members):
        raise BadUsage("the steps of a batch have different optional inputs: use -b 1")
    return tuple(stack_batch([member[at] for member in members]) for at in range(len(names)))
