"""Suppression of PyTorch's deprecation warnings for calls that current models still need."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()  # warning filters are global to the process


@contextmanager
def ignore_deprecations() -> Iterator[None]:
    """Ignore deprecation warnings.

    They address the model's author; operators cannot act on them.
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
