"""Flow control of the responses to calls, for callers that may be slow."""

from __future__ import annotations

from threading import Lock
from weakref import WeakSet

from tritonpy_ipc.windows import MAX_BYTES, MAX_RESPONSES
from tritonpy_types import FlowControl, InferRequest


class CallStream:
    """The unconsumed responses to one call; stored as the `tag` of its request.

    The producer waits for `flow_control`. `awaited` is set while the caller waits for the first
    response and may consume nothing else before it. `abandoned` is set when no code will consume
    further responses. `number` is for the caller's own use.
    """

    __slots__ = ("_lock", "_overdraft", "abandoned", "awaited", "flow_control", "number")

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.flow_control = FlowControl(MAX_RESPONSES, MAX_BYTES)
        self.awaited = False
        self.abandoned = False
        self._lock = Lock()
        self._overdraft = 0  # unconsumed responses that count as consumed

    @property
    def unconsumed(self) -> int:
        """Responses that the caller has yet to consume."""
        return self.flow_control.responses + self._overdraft

    def consume(self, count: int = 1) -> None:
        """Record that the caller consumed `count` of the available responses."""
        for _ in range(count):
            with self._lock:
                overdrawn = self._overdraft > 0
                if overdrawn:
                    self._overdraft -= 1
            if not overdrawn:
                self._take()

    def abandon(self) -> None:
        """Let the call finish without a consumer: its producer is not blocked any more."""
        self.abandoned = True
        self.flow_control.abandon()

    def extend_window(self) -> None:
        """Let the producer send another window although nothing was consumed."""
        for _ in range(self.flow_control.responses):
            with self._lock:
                self._overdraft += 1
            self._take()

    def _take(self) -> None:
        try:
            self.flow_control.take()
        except IndexError:  # consumed and overdrawn at the same time
            with self._lock:
                self._overdraft -= 1


class CallStreams:
    """The calls in flight of one caller; any thread may use it.

    A caller that alternates between two streams of one model can deadlock. It waits for the first
    response of one stream. That stream waits for the instance, which the other stream occupies and
    which waits for the caller. The window of the other stream is then extended.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: WeakSet[InferRequest] = WeakSet()

    def begin(self, call: InferRequest) -> None:
        """Add a call whose `tag` is a `CallStream`."""
        with self._lock:
            self._open.add(call)

    def end(self, call: InferRequest) -> None:
        """Remove a call that has finished or was not accepted."""
        with self._lock:
            self._open.discard(call)

    def close(self) -> None:
        """Lift flow control for all calls: the caller is gone."""
        with self._lock:
            calls = list(self._open)
        for call in calls:
            call.tag.abandon()

    def mark_awaited(self, call: InferRequest) -> None:
        """Record that the caller waits for the first response of `call`."""
        call.tag.awaited = True
        self.resume_blocked()

    def resume_blocked(self) -> None:
        """Extend the windows of streams that may occupy the instance the caller waits for.

        Call it whenever a producer is blocked.
        """
        with self._lock:
            calls = list(self._open)
        models = {
            call.model_name
            for call in calls
            if call.tag.awaited and call.batch is None and not call.finished
        }
        if models:
            for call in calls:
                if (
                    call.model_name in models
                    and call.batch is not None
                    and call.tag.flow_control.blocks_producer
                ):
                    call.tag.extend_window()
