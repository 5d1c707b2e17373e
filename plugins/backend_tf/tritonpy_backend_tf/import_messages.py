"""Filter for messages that TensorFlow prints to standard error while it is imported."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Its libraries log while they are loaded, before logging can be configured. The lines look like
# `I0000 00:00:1700000000.1 42 port.cc:153] …`.
_MESSAGE = re.compile(
    rb"[IWE]\d{4} \S+ +\d+ \S+\.cc:\d+\]|WARNING: All log messages before absl::InitializeLog\(\)"
)
_STDERR = 2


@contextmanager
def suppress_import_messages() -> Iterator[None]:
    """Drop TensorFlow's import messages in the `with` block; other output to standard error passes.

    A process that is started in the block keeps writing through the filter. The reading thread ends
    when the last writer closes the pipe.
    """
    reading, writing = os.pipe()
    kept = os.dup(_STDERR)
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(
        target=_forward_lines, args=(reading, kept), name="tensorflow-greeting", daemon=True
    ).start()
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)


def _forward_lines(reading: int, kept: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(kept, "wb", 0) as stderr:
        for line in lines:
            if not _MESSAGE.match(line):
                stderr.write(line)
