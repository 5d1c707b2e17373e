from __future__ import annotations

import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_trt import cuda as module
from tritonpy_backend_trt.cuda import Cuda, CudaRuntimeError


def test_cuda_errors_have_cudas_text(simulation):
    cuda = Cuda(simulation.runtime)
    with pytest.raises(CudaRuntimeError) as caught:
        cuda.set_device(7)
    assert caught.value.message == "invalid device ordinal"
    simulation.machine.refusals["cudaMalloc"] = 2
    with pytest.raises(CudaRuntimeError, match="out of memory"):
        cuda.allocate(1)


def test_a_device_context_restores_the_threads_device(simulation):
    cuda = Cuda(simulation.runtime)
    cuda.set_device(1)
    with cuda.device_context(0):
        assert simulation.machine.device == 0
    assert simulation.machine.device == 1
    cuda.set_device(0)


def test_the_compute_capability_of_each_gpu_is_returned(simulation):
    cuda = Cuda(simulation.runtime)
    assert [cuda.compute_capability(gpu) for gpu in (0, 1)] == ["8.0", "8.1"]


def test_without_cuda_python_the_error_says_what_to_install(simulation, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(Unavailable, match="pip install cuda-bindings"):
        module.load_cuda()


def test_the_calls_are_those_of_cuda_python():
    """Every used name exists in the real package, which can be checked without a GPU."""
    runtime = pytest.importorskip("cuda.bindings.runtime", reason="needs cuda-bindings")
    import inspect
    import re

    names = set(re.findall(r"_runtime\.(cuda\w+)", inspect.getsource(module)))
    assert {"cudaGraphInstantiate", "cudaMemcpyAsync", "cudaStreamBeginCapture"} <= names
    assert [name for name in names if not hasattr(runtime, name)] == []
    assert runtime.cudaMemcpyKind.cudaMemcpyDefault
    assert runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal is not None
    assert runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor
    # Streams and events may be integers, as in TensorRT. Without a GPU the call fails, but not
    # because of its arguments.
    for call in (runtime.cudaEventRecord, runtime.cudaGraphLaunch):
        status, *_ = call(0, 0)
        assert isinstance(status, runtime.cudaError_t)
