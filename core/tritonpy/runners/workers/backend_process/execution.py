"""One batch that the server gave to this worker."""

from __future__ import annotations

from tritonpy.types import Batch, InferRequest


class Execution:
    """`number` is the server's; `open` has the requests by their numbers that have no final answer yet."""

    __slots__ = ("batch", "number", "open", "states_sent")

    def __init__(self, number: int, batch: Batch, requests: dict[int, InferRequest]) -> None:
        self.number = number
        self.batch = batch
        self.open = requests
        self.states_sent = False

    def leave(self, request: InferRequest) -> None:
        """Forget a request that has its final answer or was handed back."""
        del self.open[request.tag]
        request.batch = None  # as a circle, they would keep the inputs until the collector comes
