from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from tritonpy import Unavailable
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.runtime import has_cuda, runtime

POOL = """
from tritonpy import Internal
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.runtime import runtime
for _ in range(2):
    runtime(OnnxOptions(enable_global_threadpool=True, intra_op_thread_count=2, inter_op_thread_count=1))
try:
    runtime(OnnxOptions(enable_global_threadpool=True, intra_op_thread_count=3))
except Internal as error:
    print(error)
"""


def test_a_missing_onnxruntime_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unavailable, match="pip install onnxruntime"):
        runtime(OnnxOptions())


def test_the_global_pool_is_created_once_and_keeps_its_sizes():
    done = subprocess.run([sys.executable, "-c", POOL], capture_output=True, text=True, check=True)
    assert "has sizes (2, 1), (3, 0) cannot be had" in done.stdout


def test_cuda_is_found_by_its_library(tmp_path, monkeypatch):
    spec = ModuleSpec("onnxruntime", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    assert not has_cuda()
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "libonnxruntime_providers_cuda.so").touch()
    assert has_cuda()


def test_no_onnxruntime_means_no_cuda(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert not has_cuda()
