"""What it takes to compute a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tritonpy.types.batch import Batch


class Work(msgspec.Struct, eq=False, gc=False):
    """Times of one request in ns; of a request that is handed on to other models, the sums of theirs. `start_ns` is when it stopped waiting.

    It is noted before the final answer is sent: by the model that computed the request, or by the scheduler that handed it on.
    """

    start_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    @classmethod
    def of(cls, batch: Batch, end_ns: int) -> Work:
        """Return what each request of `batch` cost whose answer came at `end_ns`."""
        return cls(
            batch.start_ns,
            batch.input_end_ns - batch.start_ns,
            batch.infer_end_ns - batch.input_end_ns,
            max(end_ns - batch.infer_end_ns, 0),
        )

    def add(self, part: Work) -> None:
        """Add the times of a request that this one was handed on as."""
        self.input_ns += part.input_ns
        self.infer_ns += part.infer_ns
        self.output_ns += part.output_ns
