"""How many threads PyTorch uses: inside an operator each instance says for itself, between operators the process has one word.

`torch.set_num_threads` speaks for the thread that calls it, and for those that are new; the pool between operators can be sized once.
"""

from __future__ import annotations

import logging
import threading

import torch

from tritonpy_backend_torch.settings import TorchSettings

_lock = threading.Lock()
_unsaid = torch.get_num_threads()  # what PyTorch itself takes, before any model asked for something
_interop = 0  # what the first model that asked got


def use_threads(
    settings: TorchSettings, cores: int, model: str, log: logging.LoggerAdapter[logging.Logger], default: int = 0
) -> None:
    """Set the thread counts for the calling thread, an instance's: the model's, else as many as its `cores` (0: none in particular), else `default`."""
    torch.set_num_threads(settings.intra_op_threads or cores or default or _unsaid)
    if settings.inter_op_threads:
        _size_pool(settings.inter_op_threads, model, log)


def _size_pool(wanted: int, model: str, log: logging.LoggerAdapter[logging.Logger]) -> None:
    global _interop
    with _lock:
        if not _interop:
            try:
                torch.set_num_interop_threads(wanted)
            except RuntimeError:  # something ran already
                log.debug("the pool between operators is in use, its size stays")
            _interop = torch.get_num_interop_threads()
    if _interop != wanted:
        log.warning(
            "model '%s' asks for %d threads between operators; the process has %d, as the first model that ran in it wanted. "
            "With isolation: process a model has its own",
            model, wanted, _interop,
        )  # fmt: skip
