"""The answers of calls on their way to a caller that may be slow."""

from __future__ import annotations

from threading import Lock
from weakref import WeakSet

from tritonpy.ipc.windows import MAX_ANSWERS, MAX_BYTES
from tritonpy.types import InferRequest, Room


class CallStream:
    """What a caller has not taken of the answers to one call; the `tag` of that call's request, whose producer waits for `room`.

    `wanted` says that the caller waits for its first answer and may take nothing else before, `left` that nobody is to take any more.
    `number` is the caller's own.
    """

    __slots__ = ("_lock", "_overdrawn", "left", "number", "room", "wanted")

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.room = Room(MAX_ANSWERS, MAX_BYTES)
        self.wanted = False
        self.left = False
        self._lock = Lock()
        self._overdrawn = 0  # answers that count as taken and are not

    @property
    def untaken(self) -> int:
        """Answers that the caller has yet to take."""
        return self.room.answers + self._overdrawn

    def took(self, count: int = 1) -> None:
        """Take note that the caller took `count` answers, of those that there are."""
        for _ in range(count):
            with self._lock:
                overdrawn = self._overdrawn > 0
                if overdrawn:
                    self._overdrawn -= 1
            if not overdrawn:
                self._take()

    def leave(self) -> None:
        """Let the call run out unheard: nobody waits until its answers are taken."""
        self.left = True
        self.room.abandon()

    def overdraw(self) -> None:
        """Let the producer go on by another window though nothing was taken."""
        for _ in range(self.room.answers):
            with self._lock:
                self._overdrawn += 1
            self._take()

    def _take(self) -> None:
        try:
            self.room.take()
        except IndexError:  # taken and overdrawn at the same moment
            with self._lock:
                self._overdrawn -= 1


class CallStreams:
    """The open calls of one caller; any thread may use it.

    A caller that takes two streams of one model by turns may wait for the first answer of one, which waits for the instance that the
    other occupies, which waits for the caller. The other is then not held back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: WeakSet[InferRequest] = WeakSet()

    def begin(self, call: InferRequest) -> None:
        """Take in a call whose `tag` is a `CallStream`."""
        with self._lock:
            self._open.add(call)

    def end(self, call: InferRequest) -> None:
        """Forget a call; it has its final answer, or nobody took it."""
        with self._lock:
            self._open.discard(call)

    def close(self) -> None:
        """Hold nobody back any more: there is no caller."""
        with self._lock:
            calls = list(self._open)
        for call in calls:
            call.tag.leave()

    def want(self, call: InferRequest) -> None:
        """Take note that the caller waits for the first answer of `call`."""
        call.tag.wanted = True
        self.let_go_on()

    def let_go_on(self) -> None:
        """Hold no stream back that may hold what the caller waits for; to be called whenever one is held back."""
        with self._lock:
            calls = list(self._open)
        wanted = {call.model_name for call in calls if call.tag.wanted and call.batch is None and not call.answered}
        if wanted:
            for call in calls:
                if call.model_name in wanted and call.batch is not None and call.tag.room.holds_back:
                    call.tag.overdraw()
