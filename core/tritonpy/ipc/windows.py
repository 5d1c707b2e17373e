"""How much of a request's stream a worker may send before the server says that there is room for more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock

from .channel import Channel
from .frame import Frame
from .questions import Questions
from .waiter import Waiter

# The server asks nothing and counts nothing of a stream that stays below half of these.
MAX_ANSWERS = 128
MAX_BYTES = 1 << 20
NOBODY = -1  # in place of a request


class _Window:
    """What was sent since the server last said that there is room; `asked` is how much of it the next such word covers."""

    __slots__ = ("answers", "asked", "nbytes", "waiting")

    def __init__(self) -> None:
        self.answers = self.nbytes = 0
        self.asked: tuple[int, int] | None = None
        self.waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return self.answers >= MAX_ANSWERS or self.nbytes >= MAX_BYTES

    @property
    def half_full(self) -> bool:
        return 2 * self.answers >= MAX_ANSWERS or 2 * self.nbytes >= MAX_BYTES


class _Sleeper:
    """A thread that waits for its call."""

    def __init__(self) -> None:
        self.waiter = Waiter()
        self._called = False

    def go_on(self) -> None:
        self._called = True
        self.waiter.wake()

    def is_called(self) -> bool:
        return self._called


class Windows:
    """The windows of the requests that have answers which were not final; any thread may use them.

    Half of a window is the question on its way: the server's reply to "room" comes when the consumer has room, when it has gone or
    when the request was cancelled, so that a stream that is fetched as fast as it is made never waits.
    """

    def __init__(self, channel: Channel, questions: Questions) -> None:
        self._channel = channel
        self._questions = questions
        self._lock = Lock()
        self._windows: dict[int, _Window] = {}

    def __len__(self) -> int:
        return len(self._windows)

    def __contains__(self, request: int) -> bool:
        return request in self._windows

    def begin(self, request: int) -> None:
        """Take note that answers of a request are about to be sent."""
        if request not in self._windows:
            self._windows[request] = _Window()

    def end(self, request: int) -> None:
        """Forget a request; whoever waits for it goes on."""
        window = self._windows.pop(request, None)
        if window is not None and window.waiting:
            self._call(window)
            # One of them may be who reads the socket, and looks up only when something comes: the server answers this at once.
            self._questions.ask_later("room", {"request": NOBODY}, _look_up)

    def full(self, request: int) -> bool:
        """Say whether to wait before the next answer."""
        window = self._windows.get(request)
        return window is not None and window.full

    def sent(self, request: int, nbytes: int) -> None:
        """Take note of an answer of that size which is on its way. Raises ChannelClosed."""
        window = self._windows.get(request)
        if window is None:
            return
        with self._lock:
            window.answers += 1
            window.nbytes += nbytes
            asks = window.half_full and self._asks(window)
        if asks:
            self._ask(request, window)

    def when_ready(self, request: int, callback: Callable[[], None]) -> None:
        """Call `callback` once: now where there is room, else from the thread that reads the server's word. Raises ChannelClosed."""
        window = self._windows.get(request)
        if window is None:
            callback()
            return
        with self._lock:
            waits = window.full
            asks = waits and self._asks(window)
            if waits:
                window.waiting.append(callback)
        if asks:
            self._ask(request, window)
        if not waits:
            callback()
        elif request not in self._windows:  # it ended meanwhile, perhaps before it knew of this one
            self._call(window)

    def wait(self, request: int) -> bool:
        """Wait for room, reading for all where nobody does; return False if the request ended meanwhile. Raises ChannelClosed."""
        while self.full(request):
            sleeper = _Sleeper()
            self.when_ready(request, sleeper.go_on)
            self._channel.wait(sleeper.waiter, sleeper.is_called)
        return request in self._windows

    @staticmethod
    def _asks(window: _Window) -> bool:
        """Say whether a question is due, and take note that it is asked; called with the lock."""
        if window.asked is not None:
            return False
        window.asked = window.answers, window.nbytes
        return True

    def _ask(self, request: int, window: _Window) -> None:
        self._questions.ask_later("room", {"request": request}, partial(self._granted, window))

    def _granted(self, window: _Window, _reply: Frame) -> None:
        with self._lock:
            answers, nbytes = window.asked or (0, 0)
            window.answers -= answers
            window.nbytes -= nbytes
            window.asked = None
        self._call(window)

    def _call(self, window: _Window) -> None:
        with self._lock:
            waiting, window.waiting = window.waiting, []
        for callback in waiting:
            callback()


def _look_up(_reply: Frame) -> None:
    """That it came is enough."""
