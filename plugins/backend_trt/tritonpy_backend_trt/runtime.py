"""Makes TensorRT's runtime."""

from __future__ import annotations

import ctypes
from typing import Any

from tritonpy import Internal
from tritonpy_backend_trt.logger import listening, logger_of, reason


def create_runtime(trt: Any) -> Any:
    """Return a new `Runtime` for the calling thread's GPU; raises Internal with TensorRT's reason."""
    with listening() as errors:
        runtime = trt.Runtime(logger_of(trt))
    if runtime is not None and not errors:
        return runtime
    # TensorRT returns an object without anything in it: to touch it, and to let go of it, ends the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
    raise Internal(f"unable to create TensorRT runtime: {reason(errors)}")
