"""Reads a program of torch.export from its file, and says why where it cannot."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import torch

from tritonpy import InvalidArgument


def read_program(path: Path) -> Any:
    """Return the `torch.export.ExportedProgram` in `path`; raises InvalidArgument with the file and what is wrong with it."""
    log, kept = logging.getLogger("torch.export"), _Kept()
    log.addHandler(kept)
    try:
        return torch.export.load(path)
    except Exception as error:
        raise InvalidArgument(
            f"'{path}' cannot be read as a program of torch.export: {_root(kept.error or error)}"
        ) from error
    finally:
        log.removeHandler(kept)


def _root(error: BaseException) -> BaseException:
    """What came on top of the first error are its traceback and the program's text."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


class _Kept(logging.Handler):
    """The exception that its thread last wrote to a log: PyTorch puts the cause there and raises 'check the warnings above'."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.thread == self._thread:
            self.error = record.exc_info[1]
