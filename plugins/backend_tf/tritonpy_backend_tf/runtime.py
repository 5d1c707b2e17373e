"""Import of TensorFlow, delayed until the first model opens: it takes seconds and 300 MB."""

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
from tritonpy_backend_tf.import_messages import suppress_import_messages

_lock = threading.Lock()
_MESSAGES, _NONE = "TF_CPP_MIN_LOG_LEVEL", "3"
# Environment variables that TensorFlow reads at import. Values set by the user take precedence.
_ENVIRONMENT = {
    # Native messages would bypass the server's log; failures are raised as exceptions.
    _MESSAGES: _NONE,
    # else the first session sets the threads per operator for all sessions
    "TF_OVERRIDE_GLOBAL_THREADPOOL": "1",
    "KERAS_BACKEND": "tensorflow",
}
_XLA_FLAGS = "TF_XLA_FLAGS"
# lets a model's graph level enable XLA on the CPU, too; has no effect alone
_XLA_ON_CPU = "--tf_xla_cpu_global_jit"


def import_tensorflow() -> Any:
    """Return the module `tensorflow`.

    Raises `Unavailable`, with instructions, if the import fails.
    """
    with _lock:
        if "tensorflow" not in sys.modules:
            _import()
        return sys.modules["tensorflow"]


def _import() -> None:
    wanted = os.environ.get(_MESSAGES, _NONE) != _NONE
    quiet: AbstractContextManager[None] = nullcontext() if wanted else suppress_import_messages()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get(_XLA_FLAGS, "").split()
    os.environ[_XLA_FLAGS] = " ".join([*flags, *([] if _XLA_ON_CPU in flags else [_XLA_ON_CPU])])
    try:
        with quiet:
            import tensorflow as tf
    except ImportError as error:
        raise Unavailable(
            f"TensorFlow cannot be imported ({error}): pip install tensorflow, "
            "or tensorflow-cpu on machines without a GPU"
        ) from error
    _forward_log(tf.get_logger())


def free_graph(graph: Any) -> None:
    """Free an unused `tf.Graph`, which would otherwise stay until garbage collection."""
    from tensorflow.python.framework.ops import dismantle_graph

    dismantle_graph(graph)


class _ServerLogHandler(logging.Handler):
    """Forwards records to the server's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger("tritonpy.backend").handle(record)


def _forward_log(logger: logging.Logger) -> None:
    # Warnings of TensorFlow's Python code address programmers; an operator cannot act on them.
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.handlers[:] = [_ServerLogHandler()]


def has_cuda() -> bool:
    """Return whether the installed TensorFlow is built for NVIDIA GPUs, without importing it."""
    spec = importlib.util.find_spec("tensorflow")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        build_info = Path(folder) / "python" / "platform" / "build_info.py"
        if build_info.is_file():
            return "'is_cuda_build', True" in build_info.read_text(encoding="utf-8")
    return False
