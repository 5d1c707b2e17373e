"""TensorRT plugin libraries: TensorRT's own, and those in the backend options."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from tritonpy import Unavailable
from tritonpy_backend_trt.logger import get_logger

_lock = threading.Lock()
_loaded_libraries: set[str] = set()


def load_libraries(trt: Any, named: str) -> None:
    """Register TensorRT's plugins and load the libraries in `named`, separated by semicolons.

    Each is loaded once per process. Raises `Unavailable` if one cannot be loaded.
    """
    with _lock:
        register = getattr(trt, "init_libnvinfer_plugins", None)  # the lean runtime has none
        if register is not None and trt.__name__ not in _loaded_libraries:
            register(get_logger(trt), "")
            _loaded_libraries.add(trt.__name__)
        for path in filter(None, named.split(";")):
            if path not in _loaded_libraries:
                _load_library(path)
                _loaded_libraries.add(path)


def _load_library(path: str) -> None:
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise Unavailable(
            f"unable to load TensorRT plugins: {error}; they are set in the backend option "
            "'plugins'"
        ) from error
