from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.tensor import Tensor

from .fake_driver import FakeDriver
from .foreign import NO_SHARING, Foreign

KINDS = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
shares = pytest.mark.skipif(NO_SHARING is not None, reason=str(NO_SHARING))


def refusal(source):
    with pytest.raises(TritonModelException) as caught:
        Tensor.from_dlpack("y", source)
    return str(caught.value)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 4, 1), (0, 2), (2, 0)])
def test_every_type_and_shape_survives_a_round_trip(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    given = Tensor("x", array)
    for source in (given, given.to_dlpack(), given.__dlpack__(stream=7)):
        taken = Tensor.from_dlpack("y", source)
        assert taken.name() == "y"
        assert taken.shape() == list(shape)
        assert taken.triton_dtype() == given.triton_dtype()
        assert taken.as_numpy().dtype == array.dtype
        assert taken.as_numpy().tolist() == array.tolist()


def test_bf16_survives_a_round_trip_as_bits():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    taken = Tensor.from_dlpack("y", Tensor.received("x", "BF16", (2,), bits))
    assert taken.triton_dtype() == 14
    assert taken._data.tolist() == bits.tolist()


@shares
def test_both_sides_see_the_same_memory():
    array = np.zeros(4, np.int32)
    taken = Tensor.from_dlpack("y", Tensor("x", array))
    taken.as_numpy()[1] = 5
    array[2] = 6
    assert array.tolist() == taken.as_numpy().tolist() == [0, 5, 6, 0]


@shares
def test_read_only_memory_is_exported():
    array = np.ones(2)
    array.flags.writeable = False
    assert Tensor.from_dlpack("y", Tensor("x", array)).as_numpy().tolist() == [1, 1]


@shares
def test_memory_lives_as_long_as_it_is_referenced():
    array = np.ones(1000)
    watch = weakref.ref(array)
    taken = Tensor.from_dlpack("y", Tensor("x", array))
    del array
    view = taken.as_numpy()[3:]
    del taken
    gc.collect()
    assert watch() is not None
    assert view.sum() == 997
    del view
    gc.collect()
    assert watch() is None


@shares
def test_a_deleted_capsule_releases_its_memory():
    array = np.ones(10)
    watch = weakref.ref(array)
    capsule = Tensor("x", array).to_dlpack()
    del array
    assert watch() is not None
    del capsule
    gc.collect()
    assert watch() is None


@shares
def test_the_error_of_a_failed_consumer_is_kept():
    def consumer(capsule, number):
        return capsule[number]

    with pytest.raises(TypeError, match="not subscriptable"):
        consumer(Tensor("x", np.zeros(2)).to_dlpack(), 1)
    with pytest.raises(TypeError, match="from_bytes"):
        int.from_bytes(*(Tensor("x", np.zeros(2)).to_dlpack(), "little", 1))


def test_an_interpreter_exits_cleanly_with_exported_memory():
    code = """
import sys
import numpy as np
from tritonpy_worker.api.tensor import Tensor
def lend(): return Tensor("x", np.ones(5))
sys.held = [Tensor.from_dlpack("y", lend()), lend().to_dlpack()]
array = sys.held[0].as_numpy()
"""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code],
        env=paths,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(
    not hasattr(np, "from_dlpack"), reason="needs numpy 1.23, which takes what others lend"
)
def test_numpy_imports_a_tensor():
    array = np.arange(6.0).reshape(2, 3)
    assert np.from_dlpack(Tensor("x", array)).tolist() == array.tolist()


@shares
def test_a_numpy_array_is_imported():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert Tensor.from_dlpack("y", array).as_numpy().tolist() == array.tolist()
    assert Tensor.from_dlpack("y", array.__dlpack__()).as_numpy().tolist() == array.tolist()


def test_memory_may_have_an_offset():
    taken = Tensor.from_dlpack("y", Foreign(np.arange(4, dtype=np.int32), byte_offset=32))
    assert taken.triton_dtype() == 4
    assert taken.as_numpy().tolist() == [0, 1, 2, 3]


def test_pinned_memory_is_host_memory():
    taken = Tensor.from_dlpack("y", Foreign(np.ones(2, np.uint8), device=(3, 1)))
    assert taken.is_cpu()
    assert taken.as_numpy().tolist() == [1, 1]


def test_the_host_has_no_streams():
    source = Foreign(np.ones(2, np.uint8))
    Tensor.from_dlpack("y", source)
    assert source.streams == [None]


@pytest.mark.parametrize(
    ("shape", "strides"), [((2, 3), (1, 2)), ((2, 3), (6, 1)), ((4,), (2,)), ((2, 1, 3), (4, 1, 1))]
)
def test_memory_that_is_not_in_c_order_is_rejected_and_not_taken(shape, strides):
    source = Foreign(np.zeros(shape, np.uint8), strides=strides)
    capsule = source.capsule()
    assert refusal(capsule) == (
        "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
    )
    assert '"dltensor"' in repr(capsule)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 3), (3, 1)), ((1, 3), (77, 1)), ((3, 1), (1, 99)), ((2, 0), (1, 1)), ((), ())],
)
def test_strides_of_dimensions_of_one_are_ignored(shape, strides):
    assert Tensor.from_dlpack(
        "y", Foreign(np.zeros(shape, np.uint8), strides=strides)
    ).shape() == list(shape)


@pytest.mark.parametrize(
    "described",
    [{"code": 5}, {"lanes": 4}, {"code": 2, "bits": 8}, {"code": 6, "bits": 1}, {"code": 17}],
)
def test_unsupported_types_are_rejected(described):
    assert refusal(Foreign(np.zeros(2, np.uint8), **described)) == "Dtype is invalid."


def test_bf16_has_sixteen_bits():
    assert (
        refusal(Foreign(np.zeros(2, np.uint32), code=4))
        == "Expected BF16 tensor to have 16 bits, but had: 32"
    )


@pytest.mark.parametrize("kind", [4, 10, 14])
def test_other_devices_are_rejected(kind):
    source = Foreign(np.zeros(2, np.uint8), device=(kind, 0))
    expected = f"DLDevice type {kind} is not support by Python backend."
    assert refusal(source) == expected
    assert source.streams == []
    assert refusal(source.capsule()) == expected


class _Unlocated:
    def __dlpack__(self, stream=None):
        raise AssertionError("it should not have been streams")


@pytest.mark.parametrize("source", [None, 5, "x", [1.0], _Unlocated()])
def test_objects_without_dlpack_are_rejected(source):
    assert refusal(source) == (
        "Provided tensor is not supported. Tensor must be a DLPack capsule         "
        "or have `__dlpack__` and `__dlpack_device__` attributes"
    )


def test_objects_that_export_no_capsule_are_rejected():
    source = Foreign(np.zeros(2, np.uint8))
    source.__class__ = type("Liar", (Foreign,), {"__dlpack__": lambda self, stream=None: 5})
    assert refusal(source) == "5 is not a DLPack capsule, or its tensor was already taken."


def test_a_capsule_is_taken_once():
    capsule = Tensor("x", np.zeros(2)).to_dlpack()
    Tensor.from_dlpack("y", capsule)
    assert "already taken" in refusal(capsule)


def test_a_name_must_be_text():
    with pytest.raises(TypeError, match=r"from_dlpack\(\): incompatible function arguments"):
        Tensor.from_dlpack(5, Tensor("x", np.zeros(2)))


def on_device(array, number=1):
    """Return a GPU tensor in host memory, which the fake driver can read."""
    return Foreign(array, device=(2, number), code=2)


def test_gpu_memory_is_not_copied(monkeypatch):
    driver = FakeDriver.install(monkeypatch)
    source = on_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    tensor = Tensor.from_dlpack("y", source)
    assert source.streams == [1]
    assert driver.called("cuCtxSynchronize") == [1]
    assert not tensor.is_cpu()
    assert (tensor.shape(), tensor.triton_dtype(), tensor.__dlpack_device__()) == (
        [2, 3],
        11,
        (2, 1),
    )
    with pytest.raises(
        TritonModelException, match=r"^Tensor is stored in GPU and cannot be converted to NumPy\.$"
    ):
        tensor.as_numpy()
    assert driver.called("cuMemcpyDtoH_v2") == []


def test_a_gpu_capsule_is_imported():
    assert not Tensor.from_dlpack("y", on_device(np.zeros(2, np.float32)).capsule()).is_cpu()


@shares
def test_gpu_memory_is_exported(monkeypatch):
    FakeDriver.install(monkeypatch)
    tensor = Tensor.from_dlpack("y", on_device(np.zeros(2, np.float32)))
    again = Tensor.from_dlpack("z", tensor)
    assert again.__dlpack_device__() == (2, 1)
    assert again.triton_dtype() == 11
    assert again._data.pointer == tensor._data.pointer


@pytest.mark.skipif(NO_SHARING is None, reason="needs a numpy older than 1.22")
def test_old_numpy_cannot_export_gpu_memory():
    with pytest.raises(TritonModelException, match=r"needs numpy 1.22"):
        Tensor.from_dlpack("y", on_device(np.zeros(2, np.float32)).capsule()).to_dlpack()


def test_a_gpu_without_driver_is_an_error(monkeypatch):
    FakeDriver.remove(monkeypatch)
    assert refusal(on_device(np.zeros(2, np.float32))) == (
        "DLPack capsule passed pointer to memory allocated on GPU device,           when GPU is not available"
    )


@pytest.fixture
def torch():
    try:
        import torch
    except ImportError:
        pytest.skip("needs torch")
    return torch


TORCH = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
]


@pytest.mark.parametrize("kind", TORCH)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2)])
def test_torch_and_a_tensor_share_memory_both_ways(torch, kind, shape):
    given = torch.ones(shape, dtype=getattr(torch, kind))
    for source in (given, torch.utils.dlpack.to_dlpack(given)):
        tensor = Tensor.from_dlpack("y", source)
        assert tensor.shape() == list(shape)
        for back in (torch.from_dlpack(tensor), torch.utils.dlpack.from_dlpack(tensor.to_dlpack())):
            assert back.dtype == given.dtype
            assert back.shape == given.shape
            assert torch.equal(back, given)
            assert not given.numel() or back.data_ptr() == given.data_ptr()


def test_tensors_that_torch_cannot_export_have_torchs_error(torch):
    assert "C-Order" in refusal(torch.zeros(2, 3).t())
    assert refusal(torch.zeros(2, dtype=torch.complex64)) == "Dtype is invalid."
    with pytest.raises((BufferError, RuntimeError), match="require"):
        Tensor.from_dlpack("y", torch.zeros(2, requires_grad=True))


def test_memory_is_released_after_torch_is_done(torch):
    array = np.ones(8)
    before = sys.getrefcount(array)
    held = torch.from_dlpack(Tensor("x", array))
    assert sys.getrefcount(array) > before
    del held
    gc.collect()
    assert sys.getrefcount(array) == before
