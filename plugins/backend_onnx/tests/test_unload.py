"""Unloading a model returns its memory to the system, even after many cycles."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tritonpy_backend_onnx.runtime import has_cuda
from tritonpy_device_cuda.nvml import open_nvml

SCRIPT = Path(__file__).with_name("unload_cycles.py")
CYCLES = 20
MIB = 1 << 20
WEIGHTS = 100 * MIB


def has_gpu():
    """Return whether GPU memory can be queried."""
    try:
        nvml = open_nvml({})
    except ImportError:
        return False
    if nvml is not None:
        nvml.close()
    return nvml is not None


@pytest.fixture
def repository(model_repository, models):
    """A model with 100 MiB of weights, half in one tensor and half in small tensors.

    The C library keeps small tensors when they are freed.
    """

    def write(kind):
        config = f'name: "m" backend: "onnxruntime" instance_group {{ kind: KIND_{kind} }}'
        models.path = model_repository.add("m", config) / "1" / "model.onnx"
        widths = [WEIGHTS // 8, *[WEIGHTS // 8 // 50] * 50]
        chunks = [np.random.default_rng(0).standard_normal(width, np.float32) for width in widths]
        names = [f"W{number}" for number in range(len(chunks))]
        nodes = [
            node
            for number, name in enumerate(names)
            for node in (
                helper.make_node("ReduceSum", [name], [f"S{number}"], keepdims=1),
                helper.make_node(
                    "Mul", ["IN" if not number else f"P{number - 1}", f"S{number}"], [f"P{number}"]
                ),
            )
        ]
        nodes.append(helper.make_node("Identity", [f"P{len(names) - 1}"], ["OUT"]))
        weights = [
            numpy_helper.from_array(chunk, name) for chunk, name in zip(chunks, names, strict=True)
        ]
        # Inputs with a default prevent constant folding, so the weights stay unchanged.
        given = {name: ("FP32", [chunk.size]) for name, chunk in zip(names, chunks, strict=True)}
        models.write(nodes, {"IN": ("FP32", [1]), **given}, {"OUT": ("FP32", [1])}, weights)
        return model_repository.path

    return write


def cycles(path, where):
    command = [sys.executable, str(SCRIPT), str(path), str(CYCLES), where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line[:1].isdecimal()]
    assert len(lines) == CYCLES
    return [(int(loaded), int(unloaded)) for loaded, unloaded in lines]


def returned(found):
    """Check that each unload frees the memory of the load, and that memory does not grow."""
    for (loaded, unloaded), (again, _) in pairwise(found):
        assert loaded - unloaded > 0.9 * WEIGHTS
        assert again - unloaded > 0.9 * WEIGHTS
    left = [unloaded for _, unloaded in found]
    assert left[-1] - left[0] < 0.1 * WEIGHTS


def test_memory_of_the_host_is_returned(repository):
    returned(cycles(repository("CPU"), "cpu"))


@pytest.mark.skipif(
    not (has_cuda() and has_gpu()), reason="needs an NVIDIA GPU, onnxruntime-gpu and nvidia-ml-py"
)
def test_memory_of_a_gpu_is_returned(repository):
    returned(
        cycles(repository("GPU"), "0")[1:]
    )  # CUDA itself allocates memory at first and keeps it
