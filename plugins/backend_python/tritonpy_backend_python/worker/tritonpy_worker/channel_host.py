"""The server as seen by a model in a worker process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .abandoned_requests import AbandonedRequests
from .api.errors import TritonModelException
from .api.outgoing_tensor import OutgoingTensor
from .api.response import InferenceResponse
from .call_responses import failed, only
from .calls import Calls
from .context import request_ids
from .host import Host
from .inflight_requests import InflightRequests
from .ipc import Frame, Kind
from .ipc.channel import Channel, ChannelClosed
from .ipc.windows import Windows
from .model_rpc_client import ModelRpcClient
from .response_frame import EMPTY, FINAL, ResponseFrame, output_row
from .shared_arrays import place, view
from .standby_reader import StandbyReader
from .task_flow_control import TaskFlowControl, current_flow_control

if TYPE_CHECKING:
    from .api.call import CallSpec
    from .api.shared_arrays import Array, Named

_T = TypeVar("_T")
_UNREACHABLE = "The server cannot be reached from a process that the model started."


class ChannelHost(Host):
    """Reaches the server through the socket.

    `collected` holds unsent responses of the executing thread.
    """

    def __init__(
        self,
        channel: Channel,
        name: str,
        model_directory: str,
        decoupled: bool,
        collected: ResponseFrame,
    ) -> None:
        self.name = name
        self.model_directory = model_directory
        self.decoupled = decoupled
        self._rpc_client = ModelRpcClient(channel)
        self.inflight = InflightRequests(Windows(channel, self._rpc_client))
        self.abandoned = AbandonedRequests(self._close_abandoned)
        self._channel = channel
        self._collected = collected
        self._calls = Calls(channel)
        self._standby_reader = StandbyReader(channel, self._calls.awaited)
        channel.on(Kind.CANCEL, self.inflight.cancel)

    def free_shared_memory(self) -> int:
        return self._channel.unused_bytes

    def listen(self) -> None:
        """Read queries of the server even while the model executes."""
        self._standby_reader.start(ticking=True)

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        try:
            row = () if response is None else output_row(response)
        except TritonModelException as error:
            self._send(request, failed(str(error)), (), final)
            raise
        if final or self._has_capacity(request):
            self._send(request, response, row, final)

    def abandon(self, request: int) -> None:
        self.abandoned.add(request)

    def is_cancelled(self, request: int) -> bool:
        if not self.inflight.is_cancelled(request):
            self._collected.send_early()
            self._channel.drain()
        return self.inflight.is_cancelled(request)

    def call(self, call: CallSpec) -> InferenceResponse:
        self._before_call()
        return only(next(self._reach(self._calls.start, call)))

    def call_stream(self, call: CallSpec) -> Iterator[InferenceResponse]:
        self._before_call()
        return self._reach(self._calls.start, call)

    async def call_async(self, call: CallSpec) -> Any:
        self._before_call()
        started = self._reach(self._calls.start_on, asyncio.get_running_loop(), call)
        self._have_replies_read()
        await started.first.future
        return started if call.decoupled else only(next(started))

    def trace_context(self, request: int) -> str | None:
        return self.inflight.trace_of(request)

    def log(self, level: str, message: str) -> None:
        arguments = {"level": level, "message": message, "requests": request_ids()}
        try:
            self._channel.send(Kind.NOTIFY, extras={"verb": "log", "arguments": arguments})
        except ChannelClosed:  # a process that the model started; its streams are logged as well
            print(message, file=sys.stderr)  # noqa: T201

    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        reply = self._query("share", {"key": key})
        if reply.descriptors:
            (descriptor,) = reply.take_descriptors()
            return view(descriptor, reply.extras["value"]["layout"])
        try:
            descriptor, layout = place(build())
        except BaseException:
            self.notify("shared", {"key": key})  # the next instance builds
            raise
        own = os.dup(descriptor)
        message = {"verb": "shared", "arguments": {"key": key, "layout": layout}}
        self._reach(self._channel.send, Kind.NOTIFY, extras=message, descriptors=[descriptor])
        return view(own, layout)

    def query(self, verb: str, arguments: dict[str, Any]) -> Any:
        return self._query(verb, arguments).extras["value"]

    def notify(self, verb: str, arguments: dict[str, Any]) -> None:
        self._reach(self._channel.send, Kind.NOTIFY, extras={"verb": verb, "arguments": arguments})

    def _before_call(self) -> None:
        self.check_executing()
        self._collected.send_early()

    def _send(
        self,
        request: int,
        response: InferenceResponse | None,
        row: Sequence[OutgoingTensor],
        final: bool,
    ) -> None:
        if final:
            self.inflight.end((request,))
        else:
            self.inflight.begin(request)
        answers = ResponseFrame(self._channel, self.name)
        answers.add(
            request, response, row, (FINAL if final else 0) | (EMPTY if response is None else 0)
        )
        self._reach(answers.send)
        if not final:
            self._reach(
                self.inflight.windows.sent, request, sum([each.data.nbytes for each in row])
            )

    def _has_capacity(self, request: int) -> bool:
        """Wait until the stream has capacity. In a coroutine, let its next step wait instead.

        Return false if the request had its final response during the wait.
        """
        windows = self.inflight.windows
        if not windows.full(request):
            return True
        flow_control = current_flow_control()
        if flow_control is not None:
            self._hold(flow_control, request)
            return True
        if self._channel.closed:
            raise TritonModelException(_UNREACHABLE)
        self._collected.send_early()
        return windows.wait(request)

    def _hold(self, flow_control: TaskFlowControl, request: int) -> None:
        waiting = object()

        def when_ready(callback: Callable[[], None]) -> None:
            self._calls.awaited.add(waiting)
            self.inflight.windows.when_ready(request, partial(self._go_on, waiting, callback))
            self._have_replies_read()

        flow_control.hold(request, when_ready)

    def _go_on(self, waiting: object, callback: Callable[[], None]) -> None:
        self._calls.awaited.discard(waiting)
        callback()

    def _have_replies_read(self) -> None:
        """Ensure that a thread reads the socket while an event loop waits for responses."""
        self._standby_reader.start()
        if not self._channel.has_leader():
            self._channel.wake_leader()

    def _close_abandoned(self, request: int) -> None:
        self.end_abandoned(request, self.inflight.has_begun(request))

    def _query(self, verb: str, arguments: dict[str, Any]) -> Frame:
        self._collected.send_early()
        return self._reach(self._rpc_client.call, verb, arguments)

    @staticmethod
    def _reach(act: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        try:
            return act(*arguments, **options)
        except ChannelClosed:
            raise TritonModelException(_UNREACHABLE) from None
