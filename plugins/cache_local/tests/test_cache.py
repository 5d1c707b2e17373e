from __future__ import annotations

import logging
import threading
from typing import ClassVar

import numpy as np
import pytest

import tritonpy_cache_local
from tritonpy import Tensor
from tritonpy_cache_local.cache import LocalCache
from tritonpy_cache_local.options import LocalCacheOptions
from tritonpy_cache_local.store import entry_bytes
from tritonpy_testing import CacheContract


class TestLocalCache(CacheContract):
    plugin = tritonpy_cache_local
    plugin_class = LocalCache
    name = "local"
    options: ClassVar = {"size": "1MiB"}


def outputs(values=(1.0,), name="OUT"):
    return [Tensor.from_numpy(name, np.array(values, np.float32))]


def gauges(cache):
    return {family.name: family.metrics[0].value for family in cache.metrics()}


def test_metrics_count_lookups_and_insertions():
    cost = entry_bytes(outputs())
    cache = LocalCache(LocalCacheOptions(size=4 * cost))
    for key in (b"a", b"b", b"a"):
        if cache.lookup(key) is None:
            cache.insert(key, outputs())
    for key in (b"c", b"d", b"e"):
        cache.insert(key, outputs())
    found = gauges(cache)
    assert found.pop("nv_cache_lookup_duration") >= 0
    assert found.pop("nv_cache_insertion_duration") >= 0
    assert found == {
        "nv_cache_util": 1.0, "nv_cache_num_entries": 4, "nv_cache_num_hits": 1, "nv_cache_num_misses": 2,
        "nv_cache_num_lookups": 3, "nv_cache_num_evictions": 1,
    }  # fmt: skip


def test_an_oversized_response_is_rejected_and_logged_once(caplog):
    cache = LocalCache(LocalCacheOptions(size=1024))
    with caplog.at_level(logging.WARNING):
        for key in (b"a", b"b", b"c"):
            cache.insert(key, outputs([0.0] * 300))
    assert cache.lookup(b"a") is None
    assert caplog.text.count("response not cached") == 1


def test_a_cache_too_small_for_any_response_works_and_logs_it(caplog):
    with caplog.at_level(logging.WARNING):
        cache = LocalCache(LocalCacheOptions(size=200))
    assert (
        "the response cache of 200 bytes is too small: a response takes 620 bytes and its data"
        in caplog.text
    )
    cache.insert(b"a", outputs())
    assert cache.lookup(b"a") is None
    LocalCache(LocalCacheOptions(size=1024))
    assert caplog.text.count("is too small") == 1


def test_a_rejected_response_evicts_nothing():
    cache = LocalCache(LocalCacheOptions(size=1024))
    cache.insert(b"a", outputs())
    cache.insert(b"b", outputs([0.0] * 300))
    assert cache.lookup(b"a") is not None


def test_a_hit_outlives_its_entry():
    cache = LocalCache(LocalCacheOptions(size=1024))
    cache.insert(b"a", outputs([5.0]))
    (found,) = cache.lookup(b"a")
    cache.insert(b"b", outputs([6.0]))
    assert cache.lookup(b"a") is None
    assert found.numpy().tolist() == [5.0]


def test_changes_to_a_hit_do_not_affect_the_entry():
    cache = LocalCache(LocalCacheOptions(size=4096))
    cache.insert(b"a", [Tensor.from_numpy("T", np.array([b"x", b"yz"], np.object_))])
    (first,) = cache.lookup(b"a")
    first.offsets()
    first.name = "changed"
    (second,) = cache.lookup(b"a")
    assert second.name == "T"
    assert second is not first


def test_a_closed_cache_is_empty():
    cache = LocalCache(LocalCacheOptions(size=4096))
    cache.insert(b"a", outputs())
    cache.close()
    assert cache.lookup(b"a") is None


def test_counters_are_consistent_with_many_threads():
    cache = LocalCache(LocalCacheOptions(size=16 * entry_bytes(outputs())))

    def work(seed):
        for turn in range(500):
            key = bytes([(turn * seed) % 32])
            found = cache.lookup(key)
            if found is None:
                cache.insert(key, outputs([float(key[0])]))
            else:
                assert found[0].numpy().tolist() == [float(key[0])]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gauges(cache)
    assert found["nv_cache_num_lookups"] == 2000
    assert found["nv_cache_num_hits"] + found["nv_cache_num_misses"] == 2000
    assert found["nv_cache_num_entries"] <= 16


@pytest.mark.parametrize(
    "array", [np.zeros((0, 3), np.float32), np.float32(3), np.zeros((2, 2), np.float16).T]
)
def test_arrays_of_any_layout_are_stored(array):
    cache = LocalCache(LocalCacheOptions(size=4096))
    cache.insert(b"a", [Tensor("OUT", "FP32", array.shape, np.asarray(array))])
    assert cache.lookup(b"a")[0].data.tolist() == np.asarray(array).tolist()


def test_metric_families_have_triton_s_help():
    cache = LocalCache(LocalCacheOptions(size=1024))
    assert {family.name: family.description for family in cache.metrics()} == {
        "nv_cache_util": "Cache utilization [0.0 - 1.0]",
        "nv_cache_num_entries": "Number of responses stored in response cache",
        "nv_cache_num_hits": "Number of cache hits in response cache",
        "nv_cache_num_misses": "Number of cache misses in response cache",
        "nv_cache_num_lookups": "Number of cache lookups in response cache",
        "nv_cache_num_evictions": "Number of cache evictions in response cache",
        "nv_cache_lookup_duration": "Total cache lookup duration (hit and miss), in microseconds",
        "nv_cache_insertion_duration": "Total cache insertion duration, in microseconds",
    }
