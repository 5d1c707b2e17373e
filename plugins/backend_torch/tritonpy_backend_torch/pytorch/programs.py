"""Reading of torch.export programs, with explanations of failures."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import torch

from tritonpy import InvalidArgument


def read_program(path: Path) -> Any:
    """Return the `torch.export.ExportedProgram` in `path`.

    Raises `InvalidArgument` with the file and the reason.
    """
    log, kept = logging.getLogger("torch.export"), _ErrorRecorder()
    log.addHandler(kept)
    try:
        return torch.export.load(path)
    except Exception as error:
        raise InvalidArgument(
            f"'{path}' is not a valid torch.export program: {_root_cause(kept.error or error)}"
        ) from error
    finally:
        log.removeHandler(kept)


def _root_cause(error: BaseException) -> BaseException:
    """Return the first error in the chain; later ones add its traceback and the program's text."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


class _ErrorRecorder(logging.Handler):
    """Records the exception that its thread last logged.

    PyTorch logs the cause of a failure and raises 'check the warnings above'.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.thread == self._thread:
            self.error = record.exc_info[1]
