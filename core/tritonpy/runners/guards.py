"""What a model does round an execution, whoever executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonpy.types import Batch


@dataclass(frozen=True, slots=True)
class BatchGuards:
    """The functions of a model that its runner calls.

    `admit` removes requests that turn out invalid, `drop` answers what waits when the scheduler itself failed, `fail` answers what an execution
    that raised left open.
    """

    admit: Callable[[Batch], bool]
    drop: Callable[[Exception], None]
    fail: Callable[[Sequence[Batch], BaseException], None]
