"""Flow control of a worker's responses: how many it may send before the server grants more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock

from .channel import Channel
from .frame import Frame
from .rpc_client import RpcClient
from .waiter import Waiter

# A stream that stays below half of these limits needs no flow-control messages.
MAX_RESPONSES = 128
MAX_BYTES = 1 << 20
NO_REQUEST = -1  # in a query that belongs to no request


class _Window:
    """Responses sent since the last grant; `requested` is how many the next grant covers."""

    __slots__ = ("nbytes", "requested", "responses", "waiting")

    def __init__(self) -> None:
        self.responses = self.nbytes = 0
        self.requested: tuple[int, int] | None = None
        self.waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return self.responses >= MAX_RESPONSES or self.nbytes >= MAX_BYTES

    @property
    def half_full(self) -> bool:
        return 2 * self.responses >= MAX_RESPONSES or 2 * self.nbytes >= MAX_BYTES


class _BlockedThread:
    """A thread that waits until it may send."""

    def __init__(self) -> None:
        self.waiter = Waiter()
        self._resumed = False

    def resume(self) -> None:
        self._resumed = True
        self.waiter.wake()

    def is_resumed(self) -> bool:
        return self._resumed


class Windows:
    """The windows of requests that stream responses; any thread may use them.

    A worker requests more credit when half of a window is used. The server grants it when the
    consumer has capacity, has gone, or has cancelled the request. A stream that is consumed as fast
    as it is produced therefore never waits.
    """

    def __init__(self, channel: Channel, rpc_client: RpcClient) -> None:
        self._channel = channel
        self._rpc_client = rpc_client
        self._lock = Lock()
        self._windows: dict[int, _Window] = {}

    def __len__(self) -> int:
        return len(self._windows)

    def __contains__(self, request: int) -> bool:
        return request in self._windows

    def begin(self, request: int) -> None:
        """Open a window for `request`, whose responses are about to be sent."""
        if request not in self._windows:
            self._windows[request] = _Window()

    def end(self, request: int) -> None:
        """Remove the window of `request` and resume its waiting threads."""
        window = self._windows.pop(request, None)
        if window is not None and window.waiting:
            self._resume_waiting(window)
            # A resumed thread may be the one that reads the socket, and it checks only when a frame
            # arrives. The server responds to this query immediately.
            self._rpc_client.start_call("credit", {"request": NO_REQUEST}, _ignore)

    def full(self, request: int) -> bool:
        """Return whether to wait before the next response."""
        window = self._windows.get(request)
        return window is not None and window.full

    def sent(self, request: int, nbytes: int) -> None:
        """Record a response of `nbytes` that is being sent. Raises `ChannelClosed`."""
        window = self._windows.get(request)
        if window is None:
            return
        with self._lock:
            window.responses += 1
            window.nbytes += nbytes
            sends = window.half_full and self._start_request(window)
        if sends:
            self._request_credit(request, window)

    def when_ready(self, request: int, callback: Callable[[], None]) -> None:
        """Call `callback` once, as soon as a response may be sent.

        It is called immediately or from the thread that reads the grant. Raises `ChannelClosed`.
        """
        window = self._windows.get(request)
        if window is None:
            callback()
            return
        with self._lock:
            waits = window.full
            sends = waits and self._start_request(window)
            if waits:
                window.waiting.append(callback)
        if sends:
            self._request_credit(request, window)
        if not waits:
            callback()
        elif request not in self._windows:
            # It ended in the meantime, perhaps before the callback was added.
            self._resume_waiting(window)

    def wait(self, request: int) -> bool:
        """Wait until a response may be sent; return False if the request has ended.

        Reads for all threads if no other thread does. Raises `ChannelClosed`.
        """
        while self.full(request):
            sleeper = _BlockedThread()
            self.when_ready(request, sleeper.resume)
            self._channel.wait(sleeper.waiter, sleeper.is_resumed)
        return request in self._windows

    @staticmethod
    def _start_request(window: _Window) -> bool:
        """Return whether to request credit, and record the request; called with the lock held."""
        if window.requested is not None:
            return False
        window.requested = window.responses, window.nbytes
        return True

    def _request_credit(self, request: int, window: _Window) -> None:
        self._rpc_client.start_call(
            "credit", {"request": request}, partial(self._add_credit, window)
        )

    def _add_credit(self, window: _Window, _reply: Frame) -> None:
        with self._lock:
            answers, nbytes = window.requested or (0, 0)
            window.responses -= answers
            window.nbytes -= nbytes
            window.requested = None
        self._resume_waiting(window)

    def _resume_waiting(self, window: _Window) -> None:
        with self._lock:
            waiting, window.waiting = window.waiting, []
        for callback in waiting:
            callback()


def _ignore(_reply: Frame) -> None:
    """Do nothing: the arrival of the result suffices."""
