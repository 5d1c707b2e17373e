"""Everything that is sent, made before the first request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonpy_bench.inputs.folder import read_folder
from tritonpy_bench.inputs.generated import random_tensor, zero_tensor
from tritonpy_bench.inputs.json_file import read_streams
from tritonpy_bench.inputs.shapes import Shapes, given_shapes, shape_of
from tritonpy_bench.inputs.tensor import InputTensor, batched
from tritonpy_bench.options import BadUsage, BenchOptions
from tritonpy_bench.target.facts import ModelFacts

Step = tuple[InputTensor, ...]


@dataclass(frozen=True)
class Corpus:
    """The inputs of every request that differs from others, and the streams: which of them follow each other in a sequence."""

    steps: tuple[Step, ...]
    streams: tuple[tuple[int, ...], ...]
    from_files: bool


def make_corpus(facts: ModelFacts, options: BenchOptions) -> Corpus:
    """Make the inputs of a model; the same for the same options. Raises BadUsage that names the input and says what to do."""
    if options.batch > 1 and not facts.max_batch_size:
        raise BadUsage(f"model '{facts.name}' takes no batches: use -b 1")
    given = given_shapes(facts, options.shape)
    streams, from_files = _streams(facts, options, given)
    steps: list[Step] = []
    numbers: list[tuple[int, ...]] = []
    for stream in streams:
        numbers.append(tuple(range(len(steps), len(steps) + len(stream))))
        steps += [_with_batch(stream, place, facts, options.batch) for place in range(len(stream))]
    return Corpus(tuple(steps), tuple(numbers), from_files)


def _streams(facts: ModelFacts, options: BenchOptions, given: Shapes) -> tuple[list[list[Step]], bool]:
    if options.input_data in {("random",), ("zero",)}:
        return [[_generated(facts, options, given)]], False
    paths = [Path(text) for text in options.input_data]
    for path in paths:
        if not path.exists():
            raise BadUsage(
                f"--input-data {path}: there is no such file or folder (and it is neither 'random' nor 'zero')"
            )
    found: list[list[Step]] = []
    for path in paths:
        found += [[read_folder(path, facts, given)]] if path.is_dir() else read_streams(path, facts, given)
    return found, True


def _generated(facts: ModelFacts, options: BenchOptions, given: Shapes) -> Step:
    chance = np.random.default_rng(options.seed)
    zero = options.input_data == ("zero",)
    return tuple(
        zero_tensor(tensor, shape_of(tensor, given, facts.name), options)
        if zero
        else random_tensor(tensor, shape_of(tensor, given, facts.name), options, chance)
        for tensor in facts.inputs
        if not tensor.optional or tensor.name in given
    )


def _with_batch(stream: Sequence[Step], place: int, facts: ModelFacts, batch: int) -> Step:
    """Return a step as a batch: of itself and the steps that follow it, or, in a sequence, of itself alone."""
    if not facts.max_batch_size:
        return stream[place]
    members = [stream[place if facts.sequence else (place + more) % len(stream)] for more in range(batch)]
    names = [tensor.name for tensor in members[0]]
    if any([tensor.name for tensor in member] != names for member in members):
        raise BadUsage("the steps of a batch have different optional inputs: use -b 1")
    return tuple(batched([member[at] for member in members]) for at in range(len(names)))
