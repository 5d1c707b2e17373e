"""A batch that the server sent to this worker."""

from __future__ import annotations

from tritonpy import Batch, InferRequest


class ReceivedExecution:
    """A batch with its number at the server.

    `open` holds the requests without a final response by their numbers.
    """

    __slots__ = ("batch", "number", "open", "states_sent")

    def __init__(self, number: int, batch: Batch, requests: dict[int, InferRequest]) -> None:
        self.number = number
        self.batch = batch
        self.open = requests
        self.states_sent = False

    def remove(self, request: InferRequest) -> None:
        """Remove a request that has its final response or was rescheduled."""
        del self.open[request.tag]
        # Breaks a reference cycle that would keep the inputs alive until garbage collection.
        request.batch = None
