"""Callbacks of a model that its runner calls around each execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonpy_types import Batch


@dataclass(frozen=True, slots=True)
class BatchCallbacks:
    """The callbacks of one model version.

    `admit` removes invalid requests from a batch. `drop` fails the waiting requests when the
    scheduler itself has failed. `fail` fails the unfinished requests of an execution that raised.
    """

    admit: Callable[[Batch], bool]
    drop: Callable[[Exception], None]
    fail: Callable[[Sequence[Batch], BaseException], None]
