"""Makes the report of a server from its statistics, at most every 100 ms."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from tritonpy import Engine, TritonError
from tritonpy_load_reports.machine import MachineLoad
from tritonpy_load_reports.report import LoadReport

INTERVAL_S = 0.1


class _Counters(msgspec.Struct, frozen=True):
    """Totals of one model version; times in ns."""

    success: int
    fail: int
    queue_ns: int
    execution_ns: int
    instances: int


class LoadReporter:
    """The load of `engine` for the responses of a frontend on the running event loop.

    `note_response` is called for each response and starts a refresh if the report is old; it never
    waits. `changed(report)` is called on the loop with each new report.
    """

    def __init__(
        self,
        engine: Engine,
        log: logging.Logger,
        changed: Callable[[LoadReport], None],
        machine: MachineLoad | None = None,
    ) -> None:
        self._engine = engine
        self._log = log
        self._changed = changed
        self._machine = machine or MachineLoad()
        self._loop = asyncio.get_running_loop()
        self._before: dict[tuple[str, str], _Counters] = {}
        self._time = time.monotonic()
        self._next = 0.0
        self._refreshing = False
        self._report = LoadReport()
        self._measuring = threading.Lock()

    def note_response(self) -> None:
        """Refresh the report in a thread if it is older than 100 ms."""
        if self._refreshing or self._loop.time() < self._next:
            return
        self._refreshing = True
        self._loop.run_in_executor(None, self.current).add_done_callback(self._measured)

    def _measured(self, done: asyncio.Future[LoadReport]) -> None:
        self._refreshing = False
        self._next = self._loop.time() + INTERVAL_S
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._log.warning("the load cannot be measured: %s", error)
        else:
            self._changed(done.result())

    def current(self) -> LoadReport:
        """Return a report that is at most 100 ms old; any thread may call it, and it may wait."""
        with self._measuring:
            now = time.monotonic()
            if now - self._time >= INTERVAL_S or not self._before:
                self._report = self._measure(now)
            return self._report

    def _measure(self, now: float) -> LoadReport:
        """Return the load since the last call; the statistics may come over a socket."""
        elapsed, self._time = now - self._time, now
        found = dict(self._read())
        before, self._before = self._before, found
        busiest = rate = errors = 0.0
        queues: dict[str, float] = {}
        for key, after in found.items():
            earlier = before.get(key) or _Counters(0, 0, 0, 0, 1)
            requests = after.success + after.fail - earlier.success - earlier.fail
            if requests <= 0 or not elapsed or not before:
                continue
            executed = after.execution_ns - earlier.execution_ns
            queue = after.queue_ns - earlier.queue_ns
            busy = executed / (elapsed * 1e9 * after.instances)
            waited = queue / (queue + executed) if queue + executed > 0 else 0.0
            busiest = max(busiest, min(busy, 1.0) + waited)
            rate += requests / elapsed
            errors += (after.fail - earlier.fail) / elapsed
            queues[key[0]] = queue / requests / 1e6
        return LoadReport(
            self._machine.cpu(), self._machine.memory(), busiest, rate, errors, queues
        )

    def _read(self) -> Iterable[tuple[tuple[str, str], _Counters]]:
        for each in self._engine.statistics():
            name = each.qualified_name
            executions = sum(
                batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns
                for batch in each.batch_stats
            )
            stats = each.inference_stats
            yield (name, each.version), _Counters(
                stats.success.count, stats.fail.count, stats.queue.ns, executions,
                self._instances(name, int(each.version)),
            )  # fmt: skip

    def _instances(self, name: str, version: int) -> int:
        try:
            config = self._engine.model_config(name, version)
        except TritonError:  # unloaded meanwhile
            return 1
        return sum(group.count for group in config.instance_group) or 1
