"""The contract of response caches."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np

from tritonpy import DATATYPES, Cache, Tensor
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.sample_inputs import random_array

KEY, OTHER_KEY = b"\x00\xff" * 16, b"other"


class CacheContract(PluginContract):
    """The contract of `Cache`.

    Set `plugin_class`, and `options` with a capacity of a few kilobytes.
    """

    interface = Cache
    hook = "tritonpy_caches"

    def make(self) -> Cache:
        """Return a new, empty cache."""
        cache = self.plugin_class(self.make_options())
        assert isinstance(cache, Cache)
        return cache

    def test_an_unknown_key_is_a_miss(self) -> None:
        cache = self.make()
        assert cache.lookup(KEY) is None
        cache.insert(KEY, [_tensor("OUT", [1.0])])
        assert cache.lookup(OTHER_KEY) is None, "lookup() found the entry of another key"
        cache.close()

    def test_outputs_of_every_type_come_back_equal(self) -> None:
        cache, random = self.make(), Random(0)
        for kind in DATATYPES.values():
            for shape in ((2, 3), (0, 3), ()):
                key = f"{kind.name}{shape}".encode()
                outputs = [
                    Tensor.from_numpy("A", random_array(kind, random, shape)),
                    _tensor("B", [2.0]),
                ]
                cache.insert(key, outputs)
                _check_equal(cache.lookup(key), outputs)
        cache.close()

    def test_a_stored_copy_is_independent_of_the_buffer(self) -> None:
        cache = self.make()
        array, text = (
            np.array([1.0, 2.0], np.float32),
            np.frombuffer(bytearray(b"\x01\x00\x00\x00a"), np.uint8),
        )
        cache.insert(KEY, [Tensor("OUT", "FP32", (2,), array), Tensor("TEXT", "BYTES", (1,), text)])
        array[:] = 9
        text[4] = ord("b")
        expected = [
            _tensor("OUT", [1.0, 2.0]),
            Tensor.from_numpy("TEXT", np.array([b"a"], np.object_)),
        ]
        _check_equal(cache.lookup(KEY), expected)
        cache.close()

    def test_changing_a_found_tensor_does_not_change_the_stored_one(self) -> None:
        cache = self.make()
        cache.insert(KEY, [_tensor("OUT", [1.0])])
        found = cache.lookup(KEY)
        assert found is not None, "a stored key is a miss"
        if found[0].data.flags.writeable:
            found[0].data[:] = 9
        _check_equal(cache.lookup(KEY), [_tensor("OUT", [1.0])])
        cache.close()

    def test_a_second_insert_is_no_error(self) -> None:
        cache = self.make()
        cache.insert(KEY, [_tensor("OUT", [1.0])])
        cache.insert(KEY, [_tensor("OUT", [1.0])])
        _check_equal(cache.lookup(KEY), [_tensor("OUT", [1.0])])
        cache.close()

    def test_concurrent_calls_are_safe(self) -> None:
        cache = self.make()

        def work(_number: int) -> None:
            for turn in range(50):
                key = str(turn % 5).encode()
                cache.insert(key, [_tensor("OUT", [float(turn % 5)])])
                found = cache.lookup(key)
                if found is not None:
                    _check_equal(found, [_tensor("OUT", [float(turn % 5)])])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        cache.close()


def _tensor(name: str, values: list[float]) -> Tensor:
    return Tensor.from_numpy(name, np.array(values, np.float32))


def _check_equal(found: Sequence[Tensor] | None, expected: Sequence[Tensor]) -> None:
    assert found is not None, "a stored key is a miss"
    assert [tensor.name for tensor in found] == [tensor.name for tensor in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.datatype, one.shape) == (other.datatype, other.shape), (
            f"output '{one.name}' changed type or shape"
        )
        assert one.numpy().tolist() == other.numpy().tolist(), (
            f"output '{one.name}' changed its values"
        )
