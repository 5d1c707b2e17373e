"""Libraries with TensorRT plugins: TensorRT's own, and those that the operator names."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from tritonpy import Unavailable
from tritonpy_backend_trt.logger import logger_of

_lock = threading.Lock()
_loaded: set[str] = set()


def load_libraries(trt: Any, named: str) -> None:
    """Register TensorRT's plugins, where this runtime has them, and load the libraries that `named` lists, separated by semicolons.

    Once per process. Raises Unavailable for one that cannot be loaded.
    """
    with _lock:
        register = getattr(trt, "init_libnvinfer_plugins", None)  # the lean runtime has none
        if register is not None and trt.__name__ not in _loaded:
            register(logger_of(trt), "")
            _loaded.add(trt.__name__)
        for path in filter(None, named.split(";")):
            if path not in _loaded:
                _load(path)
                _loaded.add(path)


def _load(path: str) -> None:
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise Unavailable(
            f"unable to load TensorRT plugins: {error}; they are named by the backend's option 'plugins'"
        ) from error
