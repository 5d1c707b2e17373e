"""Latency of wake-ups between the event loop and instances."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any

from tritonpy.frontend import LoopQueueSink
from tritonpy.runners.dispatcher import Dispatcher, Step
from tritonpy.runners.slot import PooledSlot, Slot


class WakeUps:
    """Records the latency of wake-ups while patched in, waits for the interpreter included."""

    def __init__(self) -> None:
        self._to_instance: list[int] = []
        self._to_loop: list[int] = []
        self._undo: list[tuple[Any, str, Any]] = []

    def patch(self) -> None:
        """Start recording."""
        wakeup_times: dict[Slot, int] = {}
        loop_wake_times: dict[LoopQueueSink, int] = {}
        wait, step = Dispatcher.wait_wakeup, Dispatcher.next_step
        wake, drain = LoopQueueSink._wake, LoopQueueSink._drain

        def recording(wake_slot: Callable[[Any], None]) -> Callable[[Slot], None]:
            def recorded_wakeup(slot: Slot) -> None:
                wakeup_times[slot] = perf_counter_ns()
                wake_slot(slot)

            return recorded_wakeup

        def recorded_wait(dispatcher: Dispatcher, slot: Slot) -> None:
            wait(dispatcher, slot)
            if slot in wakeup_times:
                self._to_instance.append(perf_counter_ns() - wakeup_times.pop(slot))

        def recorded_step(dispatcher: Dispatcher, slot: PooledSlot) -> Step:
            if slot in wakeup_times:
                self._to_instance.append(perf_counter_ns() - wakeup_times.pop(slot))
            return step(dispatcher, slot)

        def recorded_loop_wake(sink: LoopQueueSink) -> None:
            loop_wake_times[sink] = perf_counter_ns()
            wake(sink)

        def recorded_drain(sink: LoopQueueSink) -> None:
            if sink in loop_wake_times:
                self._to_loop.append(perf_counter_ns() - loop_wake_times.pop(sink))
            drain(sink)

        for kind in (Slot, PooledSlot):
            self._replace(kind, "wake", recording(kind.wake))
        self._replace(Dispatcher, "wait_wakeup", recorded_wait)
        self._replace(Dispatcher, "next_step", recorded_step)
        self._replace(LoopQueueSink, "_wake", recorded_loop_wake)
        self._replace(LoopQueueSink, "_drain", recorded_drain)

    def restore(self) -> None:
        """Stop recording."""
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()

    def medians_us(self) -> tuple[float, float]:
        """Return the median latencies to the instance and to the event loop; 0 without wake-ups."""
        return _median_us(self._to_instance), _median_us(self._to_loop)

    def _replace(self, owner: Any, name: str, function: Any) -> None:
        self._undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, function)


def _median_us(times: list[int]) -> float:
    return median(times) / 1000 if times else 0.0
