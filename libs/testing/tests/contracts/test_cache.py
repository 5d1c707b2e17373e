from __future__ import annotations

import threading

import numpy as np
import pytest

from tritonpy import Cache, Tensor, hookimpl
from tritonpy_testing import CacheContract


class Dictionary(Cache):
    def __init__(self, options):
        super().__init__(options)
        self.entries = {}

    def lookup(self, key):
        return self.entries.get(key)

    def insert(self, key, outputs):
        self.entries[key] = [self.copy(tensor) for tensor in outputs]

    def copy(self, tensor):
        data = tensor.data.copy()
        data.setflags(write=False)
        return Tensor(tensor.name, tensor.datatype, tensor.shape, data)


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_caches():
        return {"dictionary": Dictionary}


class TestDictionary(CacheContract):
    plugin_class = Dictionary
    plugin = Plugin
    name = "dictionary"


class Keeping(Dictionary):
    def copy(self, tensor):
        return tensor


class Writable(Dictionary):
    def copy(self, tensor):
        return Tensor(tensor.name, tensor.datatype, tensor.shape, tensor.data.copy())


class NumbersOnly(Dictionary):
    def copy(self, tensor):
        return Tensor(tensor.name, tensor.datatype, tensor.shape, np.array(tensor.data, np.float32))


class OneEntry(Dictionary):
    def lookup(self, key):
        return next(iter(self.entries.values()), None)


class Nothing(Dictionary):
    def insert(self, key, outputs):
        """Store nothing."""


class Once(Dictionary):
    def insert(self, key, outputs):
        if key in self.entries:
            raise KeyError(key)
        super().insert(key, outputs)


class OneThread(Dictionary):
    def __init__(self, options):
        super().__init__(options)
        self.home = threading.current_thread()

    def lookup(self, key):
        assert threading.current_thread() is self.home
        return super().lookup(key)


BROKEN = {
    Keeping: "test_a_stored_copy_is_independent_of_the_buffer",
    Writable: "test_changing_a_found_tensor_does_not_change_the_stored_one",
    NumbersOnly: "test_outputs_of_every_type_come_back_equal",
    OneEntry: "test_an_unknown_key_is_a_miss",
    Nothing: "test_outputs_of_every_type_come_back_equal",
    Once: "test_a_second_insert_is_no_error",
    OneThread: "test_concurrent_calls_are_safe",
}


@pytest.mark.parametrize("cache", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_cache_fails(failures, cache):
    contract = type("Broken", (CacheContract,), {"plugin_class": cache})
    assert BROKEN[cache] in failures(contract)
