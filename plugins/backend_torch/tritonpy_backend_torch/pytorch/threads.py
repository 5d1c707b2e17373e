"""Thread counts of PyTorch: intra-operator per instance, inter-operator per process.

`torch.set_num_threads` applies to the calling thread and to new threads. The inter-operator pool
can be sized only once.
"""

from __future__ import annotations

import logging
import threading

import torch

from tritonpy_backend_torch.settings import ModelSettings
from tritonpy_config.processors import default_threads

_lock = threading.Lock()
_default_threads = torch.get_num_threads()  # PyTorch's own default, before any model changes it
_interop_threads = 0  # size of the inter-operator pool, set by the first model that configures it


def set_thread_counts(
    settings: ModelSettings,
    cores: int,
    model: str,
    log: logging.LoggerAdapter[logging.Logger],
    default: int = 0,
) -> None:
    """Set the thread counts for the calling thread, which belongs to an instance.

    The intra-operator count is the model's setting, else its number of pinned `cores` (0: not
    pinned), else `default`.
    """
    default = default or default_threads() or _default_threads
    torch.set_num_threads(settings.intra_op_threads or cores or default)
    if settings.inter_op_threads:
        _set_interop_threads(settings.inter_op_threads, model, log)


def _set_interop_threads(
    wanted: int, model: str, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    global _interop_threads
    with _lock:
        if not _interop_threads:
            try:
                torch.set_num_interop_threads(wanted)
            except RuntimeError:  # the pool is already in use
                log.debug("the inter-operator pool is in use, its size cannot change")
            _interop_threads = torch.get_num_interop_threads()
    if _interop_threads != wanted:
        log.warning(
            "model '%s' sets %d inter-operator threads, but the process has %d, "
            "set by the first model that ran in it. "
            "Set isolation: process to give the model its own",
            model, wanted, _interop_threads,
        )  # fmt: skip
