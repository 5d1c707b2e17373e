"""How long it takes until the other thread is awake: from the event loop to an instance, and back."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any

from tritonpy import TurnSink
from tritonpy.runners.dispatcher import Dispatcher, Step
from tritonpy.runners.slot import PooledSlot, Slot


class WakeUps:
    """Notes the time of each ring and each wake-up while it is patched in. A thread that waits for the interpreter counts as asleep."""

    def __init__(self) -> None:
        self._to_instance: list[int] = []
        self._to_loop: list[int] = []
        self._undo: list[tuple[Any, str, Any]] = []

    def patch(self) -> None:
        """Begin to take notes."""
        rung: dict[Slot, int] = {}
        woken: dict[TurnSink, int] = {}
        wait, step = Dispatcher.wait_ring, Dispatcher.next_step
        wake, drain = TurnSink._wake, TurnSink._drain

        def noting(ring: Callable[[Any], None]) -> Callable[[Slot], None]:
            def noted_ring(slot: Slot) -> None:
                rung[slot] = perf_counter_ns()
                ring(slot)

            return noted_ring

        def noted_wait(dispatcher: Dispatcher, slot: Slot) -> None:
            wait(dispatcher, slot)
            if slot in rung:
                self._to_instance.append(perf_counter_ns() - rung.pop(slot))

        def noted_step(dispatcher: Dispatcher, slot: PooledSlot) -> Step:
            if slot in rung:
                self._to_instance.append(perf_counter_ns() - rung.pop(slot))
            return step(dispatcher, slot)

        def noted_wake(sink: TurnSink) -> None:
            woken[sink] = perf_counter_ns()
            wake(sink)

        def noted_drain(sink: TurnSink) -> None:
            if sink in woken:
                self._to_loop.append(perf_counter_ns() - woken.pop(sink))
            drain(sink)

        for kind in (Slot, PooledSlot):
            self._replace(kind, "ring", noting(kind.ring))
        self._replace(Dispatcher, "wait_ring", noted_wait)
        self._replace(Dispatcher, "next_step", noted_step)
        self._replace(TurnSink, "_wake", noted_wake)
        self._replace(TurnSink, "_drain", noted_drain)

    def restore(self) -> None:
        """Stop to take notes."""
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()

    def medians_us(self) -> tuple[float, float]:
        """Return the medians to the instance and to the loop; 0 where nobody had to be woken."""
        return _median_us(self._to_instance), _median_us(self._to_loop)

    def _replace(self, owner: Any, name: str, function: Any) -> None:
        self._undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, function)


def _median_us(times: list[int]) -> float:
    return median(times) / 1000 if times else 0.0
