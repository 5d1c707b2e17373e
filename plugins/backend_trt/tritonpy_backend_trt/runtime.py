"""Creation of TensorRT's runtime."""

from __future__ import annotations

import ctypes
from typing import Any

from tritonpy import Internal
from tritonpy_backend_trt.logger import collect_errors, get_logger, last_error


def create_runtime(trt: Any) -> Any:
    """Return a new `Runtime` for the calling thread's GPU.

    Raises `Internal` with TensorRT's error.
    """
    with collect_errors() as errors:
        runtime = trt.Runtime(get_logger(trt))
    if runtime is not None and not errors:
        return runtime
    # On failure TensorRT returns an empty object. Using or freeing it would crash the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
    raise Internal(f"unable to create TensorRT runtime: {last_error(errors)}")
