from __future__ import annotations

import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_trt import cuda as module
from tritonpy_backend_trt.cuda import Cuda, CudaFailure


def test_what_cuda_refuses_is_said_in_its_own_words(simulation):
    cuda = Cuda(simulation.runtime)
    with pytest.raises(CudaFailure) as caught:
        cuda.use(7)
    assert caught.value.message == "invalid device ordinal"
    simulation.machine.refusals["cudaMalloc"] = 2
    with pytest.raises(CudaFailure, match="out of memory"):
        cuda.allocate(1)


def test_a_device_is_used_for_a_while_and_the_thread_has_its_own_again(simulation):
    cuda = Cuda(simulation.runtime)
    cuda.use(1)
    with cuda.on(0):
        assert simulation.machine.device == 0
    assert simulation.machine.device == 1
    cuda.use(0)


def test_the_capability_of_each_gpu_is_told(simulation):
    cuda = Cuda(simulation.runtime)
    assert [cuda.capability(gpu) for gpu in (0, 1)] == ["8.0", "8.1"]


def test_without_cuda_python_the_error_says_what_to_install(simulation, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(Unavailable, match="pip install cuda-bindings"):
        module.cuda()


def test_the_calls_are_those_of_cuda_python():
    """Every name that is used exists in the real package, which needs no GPU to be asked."""
    runtime = pytest.importorskip("cuda.bindings.runtime", reason="needs cuda-bindings")
    import inspect
    import re

    names = set(re.findall(r"_runtime\.(cuda\w+)", inspect.getsource(module)))
    assert {"cudaGraphInstantiate", "cudaMemcpyAsync", "cudaStreamBeginCapture"} <= names
    assert [name for name in names if not hasattr(runtime, name)] == []
    assert runtime.cudaMemcpyKind.cudaMemcpyDefault
    assert runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal is not None
    assert runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor
    # Streams and events may be given as numbers, as TensorRT has them; without a GPU the call is refused, and not for its arguments.
    for call in (runtime.cudaEventRecord, runtime.cudaGraphLaunch):
        status, *_ = call(0, 0)
        assert isinstance(status, runtime.cudaError_t)
