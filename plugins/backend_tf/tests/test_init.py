from __future__ import annotations

import subprocess
import sys

import tritonpy_backend_tf
from tritonpy_backend_tf.backend import TensorFlowBackend


def test_the_hook_names_the_backend():
    target = tritonpy_backend_tf.tritonpy_backends()["tensorflow"]
    module, _, name = target.partition(":")
    assert getattr(sys.modules[module], name) is TensorFlowBackend


def test_importing_the_backend_imports_neither_tensorflow_nor_keras():
    code = "import sys, tritonpy_backend_tf.backend; sys.exit(bool({'tensorflow', 'keras'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
