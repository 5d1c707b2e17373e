from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy.frontend import CudaRegion
from tritonpy.plugins import install_command
from tritonpy_device_cuda import cuda_calls
from tritonpy_device_cuda.region_memory import open_cuda

from .fake_handles import HANDLE, FakeHandles

REFUSED = "^failed to register shared memory region: invalid args$"


@pytest.fixture
def cuda(monkeypatch):
    cuda = FakeHandles()
    monkeypatch.setattr(cuda_calls, "visible_gpus", lambda: [0])
    monkeypatch.setattr(cuda_calls, "CudaCalls", lambda: cuda)
    return cuda


def opened(byte_size=16, handle=HANDLE):
    return open_cuda(CudaRegion("r", 0, byte_size), handle)


def test_reads_and_writes_copy_between_host_and_gpu(cuda):
    memory = opened()
    view = memory.read(4, 4)
    assert bytes(view) == bytes([4, 5, 6, 7])
    assert view.readonly
    memory.write(8, np.array([[1], [2]], np.int16)[::-1])
    assert cuda.memory[8:12].tobytes() == np.array([2, 1], np.int16).tobytes()


@pytest.mark.parametrize("handle", [b"", b"\xff" * 64])
def test_a_wrong_handle_is_refused_and_logged(cuda, caplog, handle):
    with pytest.raises(InvalidArgument, match=REFUSED):
        opened(handle=handle)
    assert "cudaErrorInvalidValue" in caplog.text


def test_a_region_larger_than_the_allocation_is_refused_and_closed(cuda):
    with pytest.raises(InvalidArgument) as refusal:
        opened(byte_size=17)
    assert refusal.value.message == "failed to register shared memory region 'r': invalid args"
    del refusal
    assert cuda.opened == 0


def test_memory_is_closed_with_its_last_reference(cuda):
    memory = opened()
    assert cuda.opened == 1
    del memory
    assert cuda.opened == 0


def test_cuda_errors_are_raised(cuda, caplog):
    memory = opened()
    cuda.broken = True
    for call, arguments in ((memory.read, (0, 1)), (memory.write, (0, np.zeros(1, np.uint8)))):
        with pytest.raises(Internal) as failure:
            call(*arguments)
        assert (
            failure.value.message
            == "failed to copy CUDA shared memory region 'r': cudaMemcpy: cudaErrorIllegalAddress"
        )


def test_a_close_error_is_logged(cuda, caplog):
    memory = opened()
    cuda.broken = True
    del memory
    assert "failed to close CUDA IPC handle: it would not close" in caplog.text


def test_without_a_gpu_the_handle_is_refused_and_the_reason_logged(cuda, monkeypatch, caplog):
    monkeypatch.setattr(cuda_calls, "visible_gpus", list)
    with pytest.raises(InvalidArgument, match=REFUSED):
        opened()
    assert "there is no GPU" in caplog.text


def test_without_cuda_python_the_reason_is_logged(cuda, monkeypatch, caplog):
    def missing():
        raise ModuleNotFoundError("No module named 'cuda'")

    monkeypatch.setattr(cuda_calls, "CudaCalls", missing)
    with pytest.raises(InvalidArgument, match=REFUSED):
        opened()
    assert install_command("tritonpy-device-cuda[cuda]") in caplog.text
