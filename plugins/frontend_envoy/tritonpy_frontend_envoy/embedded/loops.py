"""One event loop for all of pyvoy's: the server has one, and pyvoy wants one per listener.

A thread of pyvoy's tells of what happens. The head of a request it gives to its application itself (`Switch`), which may ask for the body at once;
everything else runs on the event loop, which is woken for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

LOG = logging.getLogger("tritonpy.envoy")
# What pyvoy's callable that hands a head to the application is called. Under another name it would run on the event loop, as the rest does.
_HEAD = "AppExecutor"


class Answered:
    """What an application returns that needs no task, and the task that pyvoy believes in then."""

    def add_done_callback(self, _callback: Callable[[Any], None]) -> None:
        """Forget it: nothing is left that could fail."""


ANSWERED = Answered()


def call_on(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> None:
    """Call on the loop, from any thread. Where it is closed nobody waits for it any more."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


class NextFuture(threading.local):
    """What the next future that pyvoy makes in this thread is to be instead: `waiter` hears of the result at once, without a callback of the loop.

    It has `set_result` and `cancelled`. Between setting it and pyvoy's taking it nothing else may run in the thread.
    """

    waiter: Any = None

    def receive(self, receive: Callable[[], Any], waiter: Any) -> None:
        """Call pyvoy's `receive` for a waiter, which may get the message before this returns: of a request without a body pyvoy has it at hand."""
        message = self.ask(receive, waiter)
        if message is not None:
            waiter.set_result(message)

    def ask(self, receive: Callable[[], Any], waiter: Any) -> Any:
        """Do the same from any thread: the message comes on the event loop; one that is at hand is returned, and None otherwise."""
        self.waiter = waiter
        message = receive()
        if self.waiter is None:
            return None
        self.waiter = None
        return _at_hand(message)


def _at_hand(awaitable: Any) -> Any:
    try:
        next(awaitable.__await__())
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("pyvoy's answer was expected to be there")


class Beginning:
    """A request that begins on the event loop of a bridge, and the task that pyvoy believes in meanwhile."""

    def __init__(self, bridge: Bridge, begin: Callable[[], Any]) -> None:
        self._bridge = bridge
        self._begin = begin

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Let it begin; `callback` hears of the end of its task, if it needs one."""
        self._bridge.call_soon_threadsafe(self._run, callback)

    def _run(self, callback: Callable[[Any], None]) -> None:
        answering = self._begin()
        if answering is not ANSWERED:
            asyncio.get_running_loop().create_task(answering).add_done_callback(callback)


class NotYet:
    """Stands for the event loop until Envoy has asked for all of its own: what comes before that is that Envoy cannot start, and ends."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def call_soon_threadsafe(self, _callback: Callable[[], object]) -> None:
        """Let pyvoy's thread go."""
        self._end()


class Rounds:
    """Who wants to know that several calls run in one turn: `begin` is called before them, `end` behind them; neither may raise."""

    def __init__(self) -> None:
        self.begin: Callable[[], object] = _nothing
        self.end: Callable[[], object] = _nothing


def _nothing() -> None:
    pass


class Bridge(asyncio.AbstractEventLoop):
    """What pyvoy takes for the event loop of one listener; its calls run on the loop of `begin`, in one turn where they come together."""

    def __init__(self, next_future: NextFuture, rounds: Rounds, when_stopped: Callable[[], None]) -> None:
        self._rounds = rounds
        self._loop: Any = NotYet(self.end)
        self._next_future = next_future
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._woken = False
        self._when_stopped = when_stopped
        self._over = threading.Event()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let calls run."""
        self._loop = loop

    def run_forever(self) -> None:
        """Hold pyvoy's thread, which has nothing to do, until `end`."""
        self._over.wait()

    def stop(self) -> None:
        """Say that Envoy has ended with this listener."""
        self._when_stopped()

    def end(self) -> None:
        """Let pyvoy's thread go, and with it Envoy."""
        self._over.set()

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]  # what pyvoy needs of it
        """Call on the loop; a head at once."""
        if type(callback).__name__ == _HEAD:
            try:
                callback()
            except Exception as error:
                _failed(error)
            return
        self._waiting.append((callback, args))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # it is closed: what still comes is the end of what nobody waits for
                self._run()

    def create_future(self) -> Any:
        """Return a future of the loop, or the one that waits."""
        waiter = self._next_future.waiter
        if waiter is None:
            return self._loop.create_future()
        self._next_future.waiter = None
        return waiter

    def create_task(self, coro: Any, **_kwargs: Any) -> Any:
        """Let begin what an application returned, if it is not answered: not a coroutine, but what begins the request on the loop."""
        return coro if coro is ANSWERED else Beginning(self, coro)

    def run_until_complete(self, future: Any) -> Any:
        """Drop a coroutine: those with which pyvoy ends its loops are none of this one's."""
        if isinstance(future, Coroutine):
            future.close()

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: the loop does it when it ends."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's signature
        """Do nothing: the loop does it when it ends."""

    def close(self) -> None:
        """Do nothing: the loop lives on."""

    def _run(self) -> None:
        # Cleared first: what is added from now on wakes the loop again.
        self._woken = False
        waiting = self._waiting
        rounds = self._rounds
        together = len(waiting) > 1
        if together:
            rounds.begin()
        try:
            while waiting:
                callback, args = waiting.popleft()
                try:
                    callback(*args)
                except Exception as error:
                    _failed(error)
        finally:
            if together:
                rounds.end()


def _failed(error: Exception) -> None:
    if not isinstance(
        error, asyncio.InvalidStateError
    ):  # who waited was cancelled in the meantime, and pyvoy does not ask before it sets a result
        LOG.error("a call from Envoy failed", exc_info=error)


class Bridges(asyncio.DefaultEventLoopPolicy):
    """Gives pyvoy its event loops, `count` of them, and everybody theirs afterwards.

    `complete` is called when pyvoy has the last one, `stopped` on the loop when Envoy has ended with the first.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        count: int,
        complete: Callable[[], None],
        stopped: Callable[[], None],
    ) -> None:
        super().__init__()
        self.next_future = NextFuture()
        self.rounds = Rounds()
        self._loop = loop
        self._count = count
        self._complete = complete
        self._stopped = stopped
        self._made: list[Bridge] = []
        self._before = asyncio.get_event_loop_policy()
        asyncio.set_event_loop_policy(self)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the next."""
        kind: Any = Bridge  # which has what pyvoy uses of an event loop, and no more
        bridge: Bridge = kind(self.next_future, self.rounds, self._stopped)
        self._made.append(bridge)
        if len(self._made) == self._count:
            asyncio.set_event_loop_policy(self._before)
            for made in self._made:
                made.begin(self._loop)
            self._complete()
        return bridge

    def end(self) -> None:
        """Let Envoy go."""
        for bridge in self._made:
            bridge.end()
