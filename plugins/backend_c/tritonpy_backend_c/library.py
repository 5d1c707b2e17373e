"""The C++ library, and its functions for Python.

The sources in `src` describe the arguments of each function.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import c_char_p, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tritonpy import TritonError, Unavailable, error_of

VARIABLE = "TRITONPY_BACKEND_C_LIBRARY"
"""Environment variable with the path of another build of the library, such as one for debugging."""

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "message": (c_char_p, []),
    "unsupported": (c_char_p, []),
    "free": (None, [c_void_p]),
    "serve": (None, [c_int64, c_int64]),
    "backend_open": (c_int64, [*[c_char_p] * 4, c_int64, c_void_p]),
    "backend_groups": (c_int64, [c_void_p, c_void_p, c_int64]),
    "backend_close": (c_int64, [c_void_p]),
    "model_open": (
        c_int64,
        [c_void_p, c_char_p, c_int64, *[c_char_p] * 3, *[c_int64] * 3, c_void_p],
    ),
    "model_config": (c_char_p, [c_void_p]),
    "model_set_config": (None, [c_void_p, c_char_p]),
    "model_close": (c_int64, [c_void_p]),
    "model_usage": (c_int64, [c_void_p, c_void_p, c_int64]),
    "instance_open": (c_int64, [c_void_p, c_int64, c_char_p, c_char_p, c_void_p]),
    "instance_ready": (c_int64, [c_void_p]),
    "instance_close": (c_int64, [c_void_p]),
    "instance_delete": (None, [c_void_p]),
    "instance_usage": (c_int64, [c_void_p, c_void_p, c_int64]),
    "layout_new": (c_void_p, [c_char_p, c_char_p]),
    "layout_delete": (None, [c_void_p]),
    "execute": (
        c_int64,
        [c_void_p, c_char_p, c_char_p, c_void_p, c_int64, c_void_p, c_int64],
    ),
    "wait": (c_int64, [c_int64, c_void_p, c_int64, c_void_p, c_int64]),
    "cancel": (None, [c_void_p, c_int64]),
    "block": (None, [c_void_p, c_int64, c_int64]),
    "open_requests": (c_int64, [c_void_p]),
    "tensor": (c_int64, [c_int64, c_void_p, c_int64, c_void_p, c_int64]),
    "answer": (None, [c_void_p, c_int64, c_char_p]),
    "call_read": (c_int64, [c_void_p, c_void_p, c_int64, c_void_p, c_int64]),
    "call_respond": (None, [c_void_p, c_char_p, c_char_p]),
    "strategy_open": (
        c_int64,
        [c_char_p, c_char_p, c_int64, c_char_p, c_char_p, c_int64, c_void_p],
    ),
    "strategy_start": (c_int64, [c_void_p]),
    "strategy_include": (c_int64, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "strategy_close": (c_int64, [c_void_p]),
    "cache_open": (c_int64, [c_char_p, c_char_p, c_int64, c_void_p]),
    "cache_lookup": (c_int64, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "cache_insert": (c_int64, [c_void_p, c_char_p, c_char_p]),
    "cache_close": (c_int64, [c_void_p]),
    "agent_open": (c_int64, [c_char_p, c_void_p]),
    "agent_close": (c_int64, [c_void_p]),
    "agent_model_open": (
        c_int64,
        [c_void_p, c_char_p, c_char_p, c_char_p, c_char_p, c_void_p],
    ),
    "agent_model_act": (c_int64, [c_void_p, c_int64]),
    "agent_model_location": (c_char_p, [c_void_p]),
    "agent_model_close": (c_int64, [c_void_p]),
}

_loading = threading.Lock()


def library_path() -> Path:
    """Return the path of the C++ library."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else Path(__file__).parent / "libtritonserver.so"


@cache
def _load() -> Any:
    path = library_path()
    if not path.is_file():
        raise Unavailable(
            f"the library {path} does not exist: install a wheel of tritonpy-backend-c, or install "
            "it from source with a C++ compiler"
        )
    # For all libraries that are loaded later: some backends are linked without naming it.
    library = ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_GLOBAL)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"tritonpy_{name}")
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    return library


def load_library() -> Any:
    """Return the library, whose functions have the names above. Raises `Unavailable`."""
    with _loading:
        return _load()


def check(library: Any, code: int) -> None:
    """Raise the error of a function that returned `code`; -1 is success."""
    if code >= 0:
        raise error_of(code, library.message().decode(errors="replace"))


def error_number(error: TritonError) -> int:
    """Return the number of an error in the C interface."""
    unknown, not_found, last = 0, 2, 7
    if error.message.startswith("Request for unknown model"):
        return not_found  # as Triton's own function that makes a request for it
    return int(error.code) if error.code <= last else unknown
