"""The server as the model of a worker process sees it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .abandoned import Abandoned
from .answers import EMPTY, FINAL, Answers, row_of
from .api.errors import TritonModelException
from .api.outgoing import Outgoing
from .api.response import InferenceResponse
from .call_responses import failed, only
from .calls import Calls
from .context import request_ids
from .host import Host
from .ipc import Frame, Kind
from .ipc.channel import Channel, ChannelClosed
from .ipc.windows import Windows
from .open_requests import OpenRequests
from .pace import Pace, current_pace
from .questions import Questions
from .shared_arrays import place, view
from .substitute import Substitute

if TYPE_CHECKING:
    from .api.call import CallSpec
    from .api.shared_arrays import Array, Named

_T = TypeVar("_T")
_UNREACHABLE = "The server cannot be reached from a process that the model started."


class ChannelHost(Host):
    """Speaks through the socket. `collected` are the answers of the executing thread that are not sent yet."""

    def __init__(self, channel: Channel, name: str, model_directory: str, decoupled: bool, collected: Answers) -> None:
        self.name = name
        self.model_directory = model_directory
        self.decoupled = decoupled
        self._questions = Questions(channel)
        self.open = OpenRequests(Windows(channel, self._questions))
        self.abandoned = Abandoned(self._close_abandoned)
        self._channel = channel
        self._collected = collected
        self._calls = Calls(channel)
        self._substitute = Substitute(channel, self._calls.awaited)
        channel.on(Kind.CANCEL, self.open.cancel)

    def free_shared_memory(self) -> int:
        return self._channel.unused_bytes

    def listen(self) -> None:
        """Have questions of the server heard while the model executes."""
        self._substitute.start(ticking=True)

    def send(self, request: int, response: InferenceResponse | None, final: bool) -> None:
        try:
            row = () if response is None else row_of(response)
        except TritonModelException as error:
            self._send(request, failed(str(error)), (), final)
            raise
        if final or self._has_room(request):
            self._send(request, response, row, final)

    def abandon(self, request: int) -> None:
        self.abandoned.add(request)

    def is_cancelled(self, request: int) -> bool:
        if not self.open.is_cancelled(request):
            self._collected.hurry()
            self._channel.drain()
        return self.open.is_cancelled(request)

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
        return self.open.trace_of(request)

    def log(self, level: str, message: str) -> None:
        said = {"level": level, "message": message, "requests": request_ids()}
        try:
            self._channel.send(Kind.TELL, extras={"verb": "log", "arguments": said})
        except ChannelClosed:  # in a process that the model started: its streams are logged as well
            print(message, file=sys.stderr)  # noqa: T201

    def share(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        reply = self._ask("share", {"key": key})
        if reply.descriptors:
            (descriptor,) = reply.take_descriptors()
            return view(descriptor, reply.extras["value"]["layout"])
        try:
            descriptor, layout = place(build())
        except BaseException:
            self.tell("shared", {"key": key})  # the next instance builds
            raise
        own = os.dup(descriptor)
        said = {"verb": "shared", "arguments": {"key": key, "layout": layout}}
        self._reach(self._channel.send, Kind.TELL, extras=said, descriptors=[descriptor])
        return view(own, layout)

    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        return self._ask(verb, arguments).extras["value"]

    def tell(self, verb: str, arguments: dict[str, Any]) -> None:
        self._reach(self._channel.send, Kind.TELL, extras={"verb": verb, "arguments": arguments})

    def _before_call(self) -> None:
        self.check_executing()
        self._collected.hurry()

    def _send(self, request: int, response: InferenceResponse | None, row: Sequence[Outgoing], final: bool) -> None:
        if final:
            self.open.end((request,))
        else:
            self.open.begin(request)
        answers = Answers(self._channel, self.name)
        answers.add(request, response, row, (FINAL if final else 0) | (EMPTY if response is None else 0))
        self._reach(answers.send)
        if not final:
            self._reach(self.open.windows.sent, request, sum([each.data.nbytes for each in row]))

    def _has_room(self, request: int) -> bool:
        """Wait for it where there is none, in a coroutine at its next step; return False if the request got its final answer meanwhile."""
        windows = self.open.windows
        if not windows.full(request):
            return True
        pace = current_pace()
        if pace is not None:
            self._hold(pace, request)
            return True
        if self._channel.closed:
            raise TritonModelException(_UNREACHABLE)
        self._collected.hurry()
        return windows.wait(request)

    def _hold(self, pace: Pace, request: int) -> None:
        waiting = object()

        def when_ready(callback: Callable[[], None]) -> None:
            self._calls.awaited.add(waiting)
            self.open.windows.when_ready(request, partial(self._go_on, waiting, callback))
            self._have_replies_read()

        pace.hold(request, when_ready)

    def _go_on(self, waiting: object, callback: Callable[[], None]) -> None:
        self._calls.awaited.discard(waiting)
        callback()

    def _have_replies_read(self) -> None:
        """See to it that a thread reads the socket while an event loop waits for what comes there."""
        self._substitute.start()
        if not self._channel.has_leader():
            self._channel.call_leader()

    def _close_abandoned(self, request: int) -> None:
        self.end_abandoned(request, self.open.has_begun(request))

    def _ask(self, verb: str, arguments: dict[str, Any]) -> Frame:
        self._collected.hurry()
        return self._reach(self._questions.ask, verb, arguments)

    @staticmethod
    def _reach(act: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        try:
            return act(*arguments, **options)
        except ChannelClosed:
            raise TritonModelException(_UNREACHABLE) from None
