"""Import of ONNX Runtime, delayed until the first model loads: it takes 0.1 s and 50 MB."""

from __future__ import annotations

import importlib.util
import os
import threading
from pathlib import Path
from typing import Any

from tritonpy import Internal, Unavailable
from tritonpy_backend_onnx.options import OnnxOptions

# ONNX Runtime reads this variable at import. Without it, official builds send usage events to
# Microsoft and store them in a database below ~/.cache. A value set by the user stays: "0" allows
# telemetry.
TELEMETRY_VARIABLE = "ORT_DISABLE_TELEMETRY"

_lock = threading.Lock()
_pool_sizes: tuple[int, int] | None = (
    None  # sizes of the process's global thread pool, once it exists
)


def import_onnxruntime(options: OnnxOptions) -> Any:
    """Return the module `onnxruntime`, with telemetry off and the global thread pool of `options`.

    The thread pool is created only if `options` enable it. Raises `Unavailable` if ONNX Runtime is
    not installed, `Internal` if the pool already exists with other sizes.
    """
    os.environ.setdefault(TELEMETRY_VARIABLE, "1")
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError as error:
        raise Unavailable(
            f"ONNX Runtime cannot be imported ({error}): pip install onnxruntime"
        ) from error
    if options.enable_global_threadpool:
        _create_pool(onnxruntime, (options.intra_op_thread_count, options.inter_op_thread_count))
    return onnxruntime


def _create_pool(onnxruntime: Any, sizes: tuple[int, int]) -> None:
    global _pool_sizes
    with _lock:
        if _pool_sizes is None:
            onnxruntime.set_global_thread_pool_sizes(*sizes)
            _pool_sizes = sizes
        elif _pool_sizes != sizes:
            raise Internal(
                f"the global thread pool of ONNX Runtime has sizes {_pool_sizes}; "
                f"restart the server to change them to {sizes}"
            )


def has_cuda() -> bool:
    """Return whether the installed ONNX Runtime has the CUDA provider, without importing it."""
    spec = importlib.util.find_spec("onnxruntime")
    folders = spec.submodule_search_locations if spec is not None else None
    return any(
        (Path(folder) / "capi" / library).is_file()
        for folder in folders or ()
        for library in ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")
    )
