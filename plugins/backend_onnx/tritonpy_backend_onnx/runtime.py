"""The one place that imports ONNX Runtime, which takes a tenth of a second and 50 MB: when the first model loads."""

from __future__ import annotations

import importlib.util
import os
import threading
from pathlib import Path
from typing import Any

from tritonpy import Internal, Unavailable
from tritonpy_backend_onnx.options import OnnxOptions

# ONNX Runtime reads this variable at import. Without it, official builds send usage events to Microsoft and keep them
# in a database below ~/.cache. A value that the user has set stays: "0" allows telemetry.
TELEMETRY_VARIABLE = "ORT_DISABLE_TELEMETRY"

_lock = threading.Lock()
_pool: tuple[int, int] | None = None  # the sizes that the process's global thread pool was created with


def runtime(options: OnnxOptions) -> Any:
    """Return the module `onnxruntime`, without its telemetry, and with the global thread pool of `options` where they ask for one.

    Raises Unavailable where ONNX Runtime is not installed, Internal where the pool exists with other sizes.
    """
    os.environ.setdefault(TELEMETRY_VARIABLE, "1")
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError as error:
        raise Unavailable(f"ONNX Runtime cannot be imported ({error}): pip install onnxruntime") from error
    if options.enable_global_threadpool:
        _create_pool(onnxruntime, (options.intra_op_thread_count, options.inter_op_thread_count))
    return onnxruntime


def _create_pool(onnxruntime: Any, sizes: tuple[int, int]) -> None:
    global _pool
    with _lock:
        if _pool is None:
            onnxruntime.set_global_thread_pool_sizes(*sizes)
            _pool = sizes
        elif _pool != sizes:
            raise Internal(f"the global thread pool of ONNX Runtime has sizes {_pool}, {sizes} cannot be had: restart")


def has_cuda() -> bool:
    """Say whether the installed ONNX Runtime brings the CUDA provider, without importing it."""
    spec = importlib.util.find_spec("onnxruntime")
    folders = spec.submodule_search_locations if spec is not None else None
    return any(
        (Path(folder) / "capi" / library).is_file()
        for folder in folders or ()
        for library in ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")
    )
