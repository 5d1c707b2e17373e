"""The one place that imports TensorFlow, which takes seconds and 300 MB: when the first model is opened."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tritonpy import Unavailable
from tritonpy_backend_tf.greeting import greeting_left_out

_lock = threading.Lock()
_MESSAGES, _NONE = "TF_CPP_MIN_LOG_LEVEL", "3"
# What TensorFlow reads once, when it is imported. Whoever starts the server may say otherwise.
_ENVIRONMENT = {
    _MESSAGES: _NONE,  # they would go to standard error, past the server's log; a failure reaches us as an exception
    "TF_OVERRIDE_GLOBAL_THREADPOOL": "1",  # else the first session decides for all how many threads an operator may have
    "KERAS_BACKEND": "tensorflow",
}
_XLA_FLAGS = "TF_XLA_FLAGS"
_XLA_ON_CPU = "--tf_xla_cpu_global_jit"  # lets the graph level of a model turn XLA on there too; alone it does nothing


def tensorflow() -> Any:
    """Return the module `tensorflow`. Raises Unavailable where it cannot be imported, with what to install."""
    with _lock:
        if "tensorflow" not in sys.modules:
            _import()
        return sys.modules["tensorflow"]


def _import() -> None:
    wanted = os.environ.get(_MESSAGES, _NONE) != _NONE
    quiet: AbstractContextManager[None] = nullcontext() if wanted else greeting_left_out()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get(_XLA_FLAGS, "").split()
    os.environ[_XLA_FLAGS] = " ".join([*flags, *([] if _XLA_ON_CPU in flags else [_XLA_ON_CPU])])
    try:
        with quiet:
            import tensorflow as tf
    except ImportError as error:
        raise Unavailable(
            f"TensorFlow cannot be imported ({error}): pip install tensorflow, or tensorflow-cpu where there is no GPU"
        ) from error
    _forward(tf.get_logger())


def dismantle(graph: Any) -> None:
    """Free a `tf.Graph` that nobody uses any more: by itself it would wait for the garbage collector, with all constants."""
    from tensorflow.python.framework.ops import dismantle_graph

    dismantle_graph(graph)


class _ServerLog(logging.Handler):
    """Hands records on to the server's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger("tritonpy.backend").handle(record)


def _forward(logger: logging.Logger) -> None:
    # Warnings of TensorFlow's Python part tell programmers how to write programs: nothing that an operator could change.
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.handlers[:] = [_ServerLog()]


def has_cuda() -> bool:
    """Say whether the installed TensorFlow is built for NVIDIA GPUs, without importing it."""
    spec = importlib.util.find_spec("tensorflow")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        facts = Path(folder) / "python" / "platform" / "build_info.py"
        if facts.is_file():
            return "'is_cuda_build', True" in facts.read_text(encoding="utf-8")
    return False
