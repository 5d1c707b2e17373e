from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tritonpy_backend_c
from plugins.backend_c.tests.conftest import Serve, int_model
from tritonpy import Internal, Tensor, running_server
from tritonpy.plugins import PluginError
from tritonpy_backend_c.cache import LibraryCache, pack, unpack
from tritonpy_backend_c.options import LibraryCacheOptions
from tritonpy_config.server import InvalidServerConfig
from tritonpy_testing import CacheContract

CACHED = "response_cache { enable: true }"


class TestContract(CacheContract):
    plugin = tritonpy_backend_c
    plugin_class = LibraryCache
    name = "c"

    @pytest.fixture(autouse=True)
    def _library(self, libraries: Path) -> None:
        self.options: dict[str, Any] = {"library": str(libraries / "cache.so")}


def cache(libraries: Path, **settings: str) -> LibraryCache:
    return LibraryCache(LibraryCacheOptions(library=str(libraries / "cache.so"), settings=settings))


def test_metrics_of_the_library_are_those_of_the_cache(libraries: Path) -> None:
    made = cache(libraries)
    for key in (b"a", b"b", b"a"):
        made.insert(key, [Tensor.from_numpy("OUT", np.zeros(3, np.float32))])
    made.lookup(b"a")
    deadline = time.monotonic() + 30
    while made.metrics()[0].metrics[0].value != 2:  # another thread changes it
        assert time.monotonic() < deadline, made.metrics()
        time.sleep(0.001)
    assert [family.name for family in made.metrics()] == ["nv_cache_num_entries"]
    made.close()
    assert made.metrics() == []


def test_an_error_of_the_start_names_the_library(libraries: Path) -> None:
    with pytest.raises(ValueError, match=r"cache\.so: the cache refuses"):
        cache(libraries, refuse="yes")


def test_a_library_without_all_functions_is_refused(libraries: Path) -> None:
    with pytest.raises(ValueError, match="required entrypoint 'TRITONCACHE_CacheInitialize'"):
        LibraryCache(LibraryCacheOptions(library=str(libraries / "agent.so")))


def test_a_lookup_that_copies_nothing_is_an_error(libraries: Path) -> None:
    made = cache(libraries, broken="yes")
    with pytest.raises(Internal, match="did not call TRITONCACHE_Copy"):
        made.lookup(b"a")
    made.close()


def test_a_response_is_stored_in_triton_s_layout() -> None:
    """A size that is configured for Triton holds as many responses."""
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    headers, arrays = pack([Tensor.from_numpy("OUT", array)])
    data = b"".join(header + part.tobytes() for header, part in zip(headers, arrays, strict=True))
    size = 4 + 3 + 4 + 5 + 4 + 2 * 8 + 8 + 24
    assert data == b"".join([
        struct.pack("=IQ", 1, size),
        struct.pack("=I", 3), b"OUT", struct.pack("=I", 5), b"INT32",
        struct.pack("=Iqq", 16, 2, 3), struct.pack("=Q", 24), array.tobytes(),
    ])  # fmt: skip


@pytest.mark.parametrize("length", [0, 3, 4, 20, 40, 60])
def test_a_damaged_response_is_an_error(length: int) -> None:
    headers, arrays = pack([Tensor.from_numpy("OUT", np.zeros((2, 3), np.float64))])
    data = (headers[0] + arrays[0].tobytes())[:length]
    with pytest.raises((ValueError, struct.error, KeyError)):
        unpack(data)


CONFIG: dict[str, Any] = {"cache": {"mine": {"anything": 3}}}


def test_a_cache_is_found_by_its_name(serve: Serve, libraries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "caches" / "mine"
    folder.mkdir(parents=True)
    (folder / "libtritoncache_mine.so").write_bytes((libraries / "cache.so").read_bytes())
    settings = CONFIG | {"cache_directory": str(tmp_path / "caches")}
    with serve({"m": int_model("misbehave", CACHED)}, "thread", **settings) as client:
        assert [client.number("m", 0) for _ in range(3)] == [0, 0, 0]
        (statistics,) = client.engine.statistics("m")
        assert statistics.inference_stats.cache_hit.count + statistics.execution_count == 3
        assert statistics.inference_stats.cache_hit.count >= 1


def test_a_plugin_with_the_name_has_priority(libraries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "local"
    folder.mkdir()
    (folder / "libtritoncache_local.so").write_bytes((libraries / "cache.so").read_bytes())
    config = {"cache_directory": str(tmp_path), "cache": {"local": {"wrong": 1}}}
    with pytest.raises(InvalidServerConfig, match=r"cache\.local"), running_server(config):
        pass


def test_an_unknown_cache_is_an_error(tmp_path: Path) -> None:
    config = CONFIG | {"cache_directory": str(tmp_path)}
    with (
        pytest.raises(PluginError, match="no plugin provides response cache 'mine'"),
        running_server(config),
    ):
        pass


class TestOptions:
    keys: ClassVar = {"library": "x.so", "size": 3}

    def test_other_keys_are_the_cache_s_own(self, libraries: Path) -> None:
        from tritonpy_config.server import decode_options

        options = decode_options(LibraryCacheOptions, self.keys, "cache.x")
        assert options.settings == {"size": "3"}
