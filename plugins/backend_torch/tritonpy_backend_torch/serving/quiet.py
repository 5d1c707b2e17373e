"""Calls that PyTorch deprecates and that models of today still need."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()  # the filters are the process's


@contextmanager
def quietly() -> Iterator[None]:
    """Let deprecations pass without a word: an operator cannot act on them, the model's author is elsewhere."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
