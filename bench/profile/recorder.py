"""Recorder of exclusive costs: it wraps functions and subtracts the costs of wrapped callees.

It needs only the standard library, because a copy of this file runs in the worker of a Python
model.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from time import perf_counter_ns
from typing import Any

TRIM = 0.9  # share of the readings that counts; other processes disturbed the slowest ones
CALIBRATION = 2000


class Microseconds:
    """Meter of time."""

    scale = 0.001

    def begin(self) -> None:
        """Do nothing; threads need no preparation."""

    def read(self) -> int:
        """Return nanoseconds."""
        return perf_counter_ns()


class Blocks:
    """Meter of the interpreter's allocated memory blocks."""

    scale = 1.0

    def begin(self) -> None:
        """Do nothing; threads need no preparation."""

    def read(self) -> int:
        """Return the number of blocks, including those of other threads."""
        return sys.getallocatedblocks()


class Calls(threading.local):
    """Meter of calls of Python and C functions per thread, without those of Cython."""

    scale = 1.0
    count = 0

    def begin(self) -> None:
        """Count the calling thread's calls from now on."""
        sys.setprofile(self._called)

    def read(self) -> int:
        """Return the calls so far."""
        return self.count

    def _called(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1


METERS: dict[str, Callable[[], Any]] = {"us": Microseconds, "blocks": Blocks, "calls": Calls}


class Recorder:
    """Wraps functions and keeps a list of exclusive readings of a meter for each."""

    def __init__(self, meter: Any) -> None:
        self._readings: dict[str, list[int]] = {}
        self._meter = meter
        self._local = threading.local()
        self._undo: list[tuple[Any, str, Any]] = []
        self._inner = self._outer = (
            0.0  # overhead of a wrapper in its own reading and in its caller's
        )

    def begin(self) -> None:
        """Measure the overhead of a wrapper in the calling thread."""
        self._meter.begin()

        def bare() -> None:
            """Do nothing."""

        child = self.wrap("child", bare)

        def with_child() -> None:
            child()

        def without() -> None:
            bare()

        parent, empty = self.wrap("parent", with_child), self.wrap("empty", without)
        for _ in range(CALIBRATION):
            parent()
            empty()
        kept, self._readings = self._readings, {}
        self._inner = trimmed(kept["child"])
        self._outer = max(trimmed(kept["parent"]) - trimmed(kept["empty"]), 0.0)

    def profiler(self) -> Any:
        """Return the argument of `threading.setprofile` that counts calls in new threads."""
        return (lambda *_: self._meter.begin()) if isinstance(self._meter, Calls) else None

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of `function` that records its calls under `name`."""
        readings, read, local = self._readings.setdefault(name, []), self._meter.read, self._local

        @wraps(function)
        def recorded(*arguments: Any, **named: Any) -> Any:
            try:
                stack = local.stack
            except AttributeError:
                stack = local.stack = []
            stack.append(0)
            begin = read()
            try:
                return function(*arguments, **named)
            finally:
                spent = read() - begin
                readings.append(spent - stack.pop())
                if stack:
                    stack[-1] += spent + self._outer

        return recorded

    def patch(self, names: Iterable[str]) -> None:
        """Wrap functions named "module:function" or "module:Class.method" until `restore`."""
        for name in names:
            module, _, path = name.partition(":")
            owner: Any = importlib.import_module(module)
            *outer, attribute = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            original = vars(owner)[attribute]
            self._undo.append((owner, attribute, original))
            setattr(owner, attribute, self.wrap(name, original))

    def restore(self) -> None:
        """Restore the original functions."""
        for owner, attribute, original in reversed(self._undo):
            setattr(owner, attribute, original)
        self._undo.clear()

    def clear(self) -> None:
        """Delete all readings; functions stay wrapped."""
        for readings in self._readings.values():
            readings.clear()

    def per_request(self, requests: int) -> dict[str, float]:
        """Return the exclusive cost per request of each function, without wrapper overhead."""
        return {
            name: (trimmed(readings) - self._inner) * len(readings) * self._meter.scale / requests
            for name, readings in self._readings.items()
            if readings
        }

    def count(self, name: str) -> int:
        """Return the number of calls of a function."""
        return len(self._readings.get(name, ()))

    def save(self, path: Path, requests: int) -> None:
        """Write `per_request` as JSON."""
        path.write_text(json.dumps(self.per_request(requests)))


def trimmed(readings: list[int]) -> float:
    """Return the mean of the lower readings."""
    kept = sorted(readings)[: max(int(len(readings) * TRIM), 1)]
    return sum(kept) / len(kept)
