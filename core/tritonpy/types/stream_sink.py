"""Where the answers of streams go: to the event loop, with word to their producers when the consumer is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.types.sink import LoopSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonpy.types.request import InferRequest
    from tritonpy.types.response import InferResponse
    from tritonpy.types.room import Room


class StreamSink(LoopSink):
    """A `LoopSink` for requests whose `tag` has a `Room` under the name `room`.

    Each answer is put into that room; whoever is given it by `deliver` calls `take` on the room once the answer has left, or was
    dropped, and `abandon` when the consumer has gone.
    """

    def put(self, request: InferRequest, response: InferResponse) -> None:
        _room(request).put(sum([tensor.nbytes for tensor in response.outputs]))
        super().put(request, response)

    def ready(self, request: InferRequest) -> bool:
        return _room(request).ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        _room(request).when_ready(callback)

    def cancelled(self, request: InferRequest) -> None:
        _room(request).release()


def _room(request: InferRequest) -> Room:
    room: Room = request.tag.room
    return room
