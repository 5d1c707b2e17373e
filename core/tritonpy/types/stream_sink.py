"""A sink for streams with flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.types.sink import LoopSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonpy.types.flow_control import FlowControl
    from tritonpy.types.request import InferRequest
    from tritonpy.types.response import InferResponse


class StreamSink(LoopSink):
    """A `LoopSink` for requests whose `tag` has a `FlowControl` named `flow_control`.

    It counts each response there. The `deliver` function calls `take` on the flow control when the
    response was sent or dropped, and `abandon` when the client has left.
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


def _room(request: InferRequest) -> FlowControl:
    flow_control: FlowControl = request.tag.flow_control
    return flow_control
