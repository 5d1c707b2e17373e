"""Compute times of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tritonpy.types.batch import Batch


class ComputeTimes(msgspec.Struct, eq=False, gc=False):
    """Compute times of one request in ns; for an ensemble the sums of its steps.

    `start_ns` is when the request stopped waiting. The times are set before the final response is
    sent, by the model that computed the request or by the scheduler that forwarded it.
    """

    start_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    @classmethod
    def of(cls, batch: Batch, end_ns: int) -> ComputeTimes:
        """Return the times of each request of `batch` whose response was ready at `end_ns`."""
        return cls(
            batch.start_ns,
            batch.input_end_ns - batch.start_ns,
            batch.infer_end_ns - batch.input_end_ns,
            max(end_ns - batch.infer_end_ns, 0),
        )

    def add(self, part: ComputeTimes) -> None:
        """Add the times of a request that was made for this one."""
        self.input_ns += part.input_ns
        self.infer_ns += part.infer_ns
        self.output_ns += part.output_ns
