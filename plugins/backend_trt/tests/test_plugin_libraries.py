from __future__ import annotations

import ctypes.util

import pytest

from tritonpy import Unavailable
from tritonpy_backend_trt.plugin_libraries import load_libraries

from .simulated.tensorrt import tensorrt


def test_plugins_of_tensorrt_are_registered_once_where_the_runtime_has_them(simulation):
    for _ in range(2):
        load_libraries(simulation.trt, "")
    assert simulation.trt.registered == [""]
    load_libraries(tensorrt(simulation.machine, "tensorrt_lean"), "")


def test_configured_libraries_are_loaded(simulation):
    load_libraries(
        simulation.trt, f"{ctypes.util.find_library('m')};;{ctypes.util.find_library('c')}"
    )


def test_a_missing_library_is_named(simulation):
    with pytest.raises(
        Unavailable,
        match=r"unable to load TensorRT plugins: /nowhere/plugin.so: .*option 'plugins'",
    ):
        load_libraries(simulation.trt, "/nowhere/plugin.so")
