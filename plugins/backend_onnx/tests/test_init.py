from __future__ import annotations

import subprocess
import sys

import tritonpy_backend_onnx
from tritonpy_backend_onnx.backend import OnnxRuntimeBackend


def test_the_hook_names_the_backend():
    target = tritonpy_backend_onnx.tritonpy_backends()["onnxruntime"]
    module, _, name = target.partition(":")
    assert getattr(sys.modules[module], name) is OnnxRuntimeBackend


def test_importing_the_backend_does_not_import_onnxruntime():
    code = "import sys, tritonpy_backend_onnx.backend; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
