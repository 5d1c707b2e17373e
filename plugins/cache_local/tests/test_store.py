from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Tensor
from tritonpy_cache_local.store import LocalStore, copy_outputs, entry_bytes

SIZE = 100


def test_the_least_recently_used_entry_is_evicted_first():
    store = LocalStore(SIZE)
    for key in (b"a", b"b", b"c"):
        store.put(key, [], 30)
    assert store.get(b"a") is not None
    store.put(b"d", [], 30)
    assert [key for key in (b"a", b"b", b"c", b"d") if store.get(key) is not None] == [
        b"a",
        b"c",
        b"d",
    ]


def test_putting_an_existing_entry_counts_as_use():
    store, first = LocalStore(SIZE), [1]
    store.put(b"a", first, 40)
    store.put(b"b", [], 40)
    store.put(b"a", [2], 40)
    assert store.get(b"a") is first
    assert store.used == 80
    store.put(b"c", [], 40)
    assert store.get(b"b") is not None or store.get(b"a") is not None


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, SIZE), st.booleans())))
def test_the_store_behaves_like_a_list_in_order_of_use(steps):
    store, model = LocalStore(SIZE), []  # (key, cost), least recently used first
    for letter, cost, looks in steps:
        key = letter.encode()
        known = next((entry for entry in model if entry[0] == key), None)
        if looks:
            assert (store.get(key) is not None) == (known is not None)
        else:
            store.put(key, [key], cost)
        if known is not None:
            model.remove(known)
            model.append(known)
        elif not looks:
            while sum(each for _, each in model) + cost > SIZE:
                model.pop(0)
            model.append((key, cost))
        assert store.used == sum(each for _, each in model) <= SIZE
        assert len(store) == len(model)


def test_clear_removes_all_entries():
    store = LocalStore(SIZE)
    store.put(b"a", [], 30)
    store.clear()
    assert (len(store), store.used) == (0, 0)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("width", [4, 1000])
def test_the_accounted_cost_matches_the_memory_used(count, width):
    store, number = LocalStore(1 << 30), 2000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for turn in range(number):
            outputs = [
                Tensor(f"OUT{place}", "FP32", (width,), np.zeros(width, np.float32))
                for place in range(count)
            ]
            store.put(
                hashlib.sha256(str(turn).encode()).digest(),
                copy_outputs(outputs),
                entry_bytes(outputs),
            )
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.7 * taken <= store.used
    assert store.used <= 1.5 * taken


def test_copies_are_read_only():
    array = np.zeros(2, np.float32)
    (copy,) = copy_outputs([Tensor("OUT", "FP32", (2,), array)])
    array[:] = 5
    assert copy.data.tolist() == [0, 0]
    assert not copy.data.flags.writeable
