from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tritonpy import Unavailable
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.runtime import TELEMETRY_VARIABLE, has_cuda, import_onnxruntime

POOL = """
from tritonpy import Internal
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.runtime import import_onnxruntime
for _ in range(2):
    import_onnxruntime(OnnxOptions(enable_global_threadpool=True, intra_op_thread_count=2, inter_op_thread_count=1))
try:
    import_onnxruntime(OnnxOptions(enable_global_threadpool=True, intra_op_thread_count=3))
except Internal as error:
    print(error)
"""


SESSION = """
import sys
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_backend_onnx.runtime import import_onnxruntime
import_onnxruntime(OnnxOptions()).InferenceSession(sys.argv[1])
"""
ADD_SUB = (
    Path(__file__).resolve().parents[3] / "examples" / "models" / "add_sub" / "1" / "model.onnx"
)


def files_of_a_session(home, **variables):
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {TELEMETRY_VARIABLE, "XDG_CACHE_HOME"}
    }
    environment = {**kept, "HOME": str(home), **variables}
    subprocess.run([sys.executable, "-c", SESSION, str(ADD_SUB)], env=environment, check=True)
    return [path.name for path in home.rglob("*") if path.is_file()]


def test_a_session_writes_no_telemetry_to_the_home_folder(tmp_path):
    assert files_of_a_session(tmp_path) == []


def test_telemetry_that_the_user_allows_stays_allowed(monkeypatch):
    monkeypatch.setenv(TELEMETRY_VARIABLE, "0")
    import_onnxruntime(OnnxOptions())
    assert os.environ[TELEMETRY_VARIABLE] == "0"


def test_a_missing_onnxruntime_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unavailable, match="pip install onnxruntime"):
        import_onnxruntime(OnnxOptions())


def test_the_global_pool_is_created_once_and_keeps_its_sizes():
    done = subprocess.run([sys.executable, "-c", POOL], capture_output=True, text=True, check=True)
    assert "has sizes (2, 1); restart the server to change them to (3, 0)" in done.stdout


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
