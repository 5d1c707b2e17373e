from __future__ import annotations

import subprocess
import sys

import tritonpy_backend_trt


def test_the_backend_has_the_name_that_triton_gives_it():
    assert list(tritonpy_backend_trt.tritonpy_backends()) == ["tensorrt"]


def test_registering_the_backend_imports_neither_tensorrt_nor_cuda():
    script = (
        "import sys, tritonpy_backend_trt, tritonpy_backend_trt.backend;"
        "print([name for name in sys.modules if name.partition('.')[0] in ('tensorrt', 'tensorrt_lean', 'cuda')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
