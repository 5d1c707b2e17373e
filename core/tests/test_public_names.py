from __future__ import annotations

import inspect
import subprocess
import sys

import tritonpy

HEAVY = ("litestar", "uvicorn", "grpc", "onnxruntime", "torch", "prometheus_client", "asgiref", "google.protobuf")


def test_importing_tritonpy_loads_no_framework_and_no_web_server() -> None:
    script = f"import sys, tritonpy; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names_exist_once() -> None:
    assert [name for name in tritonpy.__all__ if not hasattr(tritonpy, name)] == []
    assert len(set(tritonpy.__all__)) == len(tritonpy.__all__)


def test_every_public_class_and_function_is_documented() -> None:
    named = {name: getattr(tritonpy, name) for name in tritonpy.__all__}
    assert [
        name
        for name, value in named.items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and not value.__doc__
    ] == []
