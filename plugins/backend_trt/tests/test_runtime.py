from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from tritonpy import Internal, Unavailable
from tritonpy_backend_trt.bindings import import_tensorrt
from tritonpy_backend_trt.runtime import create_runtime
from tritonpy_device_cuda.gpus import visible_gpus


def test_a_runtime_is_created(simulation):
    assert isinstance(create_runtime(simulation.trt), simulation.trt.Runtime)


def test_a_failed_runtime_is_never_freed(simulation):
    simulation.machine.refusals["runtime"] = 1
    with pytest.raises(
        Internal,
        match="unable to create TensorRT runtime: CUDA initialization failure with error: 35",
    ):
        create_runtime(simulation.trt)
    gc.collect()
    assert simulation.machine.crashes == 0


def test_the_real_runtime_without_a_gpu_raises_without_a_crash():
    try:
        import_tensorrt()
    except Unavailable as error:
        pytest.skip(f"needs TensorRT's bindings: {error}")
    if visible_gpus():
        pytest.skip("needs a machine without an NVIDIA GPU")
    script = """
import gc
from tritonpy import Internal
from tritonpy_backend_trt.bindings import import_tensorrt
from tritonpy_backend_trt.runtime import create_runtime
try:
    create_runtime(import_tensorrt())
except Internal as error:
    text = error.message
gc.collect()
print(text)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("unable to create TensorRT runtime: ")
    assert "CUDA" in done.stdout
