"""Keeps what TensorFlow prints while it is imported off the server's standard error."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Its libraries greet when they are loaded, before anybody can tell them not to: lines such as `I0000 00:00:1700000000.1 42 port.cc:153] …`.
_GREETING = re.compile(rb"[IWE]\d{4} \S+ +\d+ \S+\.cc:\d+\]|WARNING: All log messages before absl::InitializeLog\(\)")
_STDERR = 2


@contextmanager
def greeting_left_out() -> Iterator[None]:
    """Pass on all that anybody writes to standard error meanwhile, except such lines.

    A process that is started meanwhile keeps writing through here: the thread that reads ends when nobody can write any more.
    """
    reading, writing = os.pipe()
    kept = os.dup(_STDERR)
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, kept), name="tensorflow-greeting", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)


def _pass_on(reading: int, kept: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(kept, "wb", 0) as stderr:
        for line in lines:
            if not _GREETING.match(line):
                stderr.write(line)
