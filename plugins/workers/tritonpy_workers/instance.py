"""An instance that runs in a worker process and is restarted when the process dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from tritonpy import (
    Batch,
    InferRequest,
    InferResponse,
    InstanceContext,
    Internal,
    ModelContext,
    TritonError,
    Unavailable,
    now_ns,
)
from tritonpy.execution import BatchCallbacks, Dispatcher, MakeSamples, Wakeups
from tritonpy.metrics import FailureReason
from tritonpy_engine_rpc.processes import Backoff
from tritonpy_workers.concurrency_limiter import ConcurrencyLimiter
from tritonpy_workers.executions import WorkerExecution
from tritonpy_workers.prefetch_depth import PrefetchDepth
from tritonpy_workers.rate_limit_lease import WorkerRateLimitLease
from tritonpy_workers.slot import WorkerSlot
from tritonpy_workers.worker import Worker
from tritonpy_workers.worker_rpc_server import TakeMore
from tritonpy_workers.worker_warmup import WorkerWarmup

_ENDED = "the worker of the model has ended"
_MAX_LOST_WORKERS = 2  # workers that may die while they hold the same request
_START_LIMIT_S = 30.0  # how long requests wait for a restart if no other instance is left
MakeWorker = Callable[
    [Callable[[Sequence[WorkerExecution]], None], Callable[[TritonError], None], TakeMore], Worker
]


class WorkerInstance:
    """Feeds a worker process and restarts it; all methods run on the event loop's thread.

    `make_lease(granted)` creates the lease at the rate limiter (None: not limited). `concurrency`
    limits concurrent executions (None: no limit). `all_broken()` returns whether no instance of the
    model can serve. `count_idle(self)` returns the number of other idle instances. `on_death()` is
    called when the process has died and is about to be restarted.
    """

    def __init__(
        self,
        model: ModelContext,
        context: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        wakeups: Wakeups,
        dispatcher: Dispatcher,
        callbacks: BatchCallbacks,
        make_lease: Callable[[Callable[[], None]], WorkerRateLimitLease] | None,
        prefetch: bool,
        is_only_instance: bool,
        concurrency: ConcurrencyLimiter | None,
        limit_s: float,
        make: MakeWorker,
        all_broken: Callable[[], bool],
        count_idle: Callable[[WorkerInstance], int],
        on_death: Callable[[], None],
        samples: MakeSamples | None = None,
    ) -> None:
        self.slot = WorkerSlot(context, loop, wakeups, self.feed)
        self.worker: Worker | None = None
        self.broken: TritonError | None = None  # why the last restart failed
        self._model = model
        self._loop = loop
        self._dispatcher = dispatcher
        self._callbacks = callbacks
        self._lease = None if make_lease is None else make_lease(self.feed)
        self.prefetch_depth = PrefetchDepth(prefetch, is_only_instance)
        self._concurrency = concurrency
        self._limit_s = limit_s
        self._limit_armed = False
        self._progress_ns = 0
        self._checking = 0
        self._make = make
        self._all_broken = all_broken
        self._count_idle = count_idle
        self._on_death = on_death
        self._samples = samples
        self._warmup: WorkerWarmup | None = None
        self._backoff = Backoff()
        self._started_ns = 0
        self._restart: asyncio.Task[None] | None = None
        self._pause: asyncio.Event | None = None  # the delay before a restart; set to end it early
        self._pause_on_demand = False  # the delay ends as soon as there is work
        self._start_s = 0.0  # duration of the last start
        self._is_serving = False
        self._drained = asyncio.Event()  # set when everything bound to the instance is done
        self._stopped = False
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and warm it up. Raises the worker's error on failure."""
        began_ns = now_ns()
        worker = self._make(self._executions_ended, self._worker_died, self._take_more)
        await worker.start()
        if self._samples is not None and not self.slot.context.passive:
            await self._warm_up(worker, self._samples)
        self.worker, self.broken = worker, None
        self._started_ns = now_ns()
        self._start_s = (self._started_ns - began_ns) / 1e9

    async def _warm_up(self, worker: Worker, samples: MakeSamples) -> None:
        self._warmup = warmup = WorkerWarmup(self._model, self.slot, worker, self._limit_s)
        try:
            await warmup.run(await asyncio.to_thread(samples))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                worker.kill("the model was unloaded")  # it may be in an endless execution
            await worker.stop()
            raise
        finally:
            self._warmup = None

    def serve(self) -> None:
        """Accept requests from now on."""
        self._is_serving = True
        self.feed()

    async def drain(self) -> None:
        """End the process when everything bound to the instance is done."""
        if self._is_serving:
            self._dispatcher.drain(self.slot)
            self.feed()
            await self._drained.wait()
        await self.stop()

    async def stop(self) -> None:
        """End the process gracefully and do not restart it; return when it is gone."""
        self._stopped = True
        self._drained.set()
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        if self._restart is not None:
            self._restart.cancel()
            await asyncio.wait((self._restart,))
        if self.worker is not None:
            worker, self.worker = self.worker, None
            await worker.stop()
            self._fail(worker.executions.abandon(), Unavailable("the model was unloaded"))
        if self._concurrency is not None:
            self._concurrency.end(self)
        if self._lease is not None:
            self._lease.release()

    def feed(self) -> None:
        """Send the worker the batches that it may have."""
        if self._stopped or not self._is_serving:
            return
        if self.slot.drained and self._count_held() == 0:
            self._drained.set()
            return
        batches: list[Batch] = []
        failure: Exception | None = None
        try:
            if self.worker is not None:
                self._take(self.worker, batches)
            elif self._pause is not None and self.broken is None:
                self._end_pause(self._pause)
            elif self.broken is not None and (self.slot.draining or self._all_broken()):
                self._refuse(self.broken)
        except Exception as error:
            failure = error
        if self.worker is not None and batches:
            self._send(self.worker, batches)
        elif self._lease is not None and self._count_held() == 0:
            self._lease.release()
        # Fail waiting requests when a scheduler or limiter raises.
        if failure is not None:
            self._dispatcher.mark_idle(self.slot)
            self._callbacks.drop(failure)

    def is_idle(self) -> bool:
        """Return whether the instance could begin an execution now."""
        able = (
            self._is_serving
            and not self._stopped
            and self.worker is not None
            and not self.worker.ending
        )
        return able and not self.slot.draining and self._lease is None and self._count_held() == 0

    def cancel(self, request: InferRequest) -> None:
        """Notify the worker that `request` is cancelled."""
        if self.worker is not None:
            self.worker.cancel(request)

    def _take(self, worker: Worker, batches: list[Batch]) -> None:
        # One batch at a time in three cases. Behind an execution that waits for a call, a batch
        # could be what the called model waits for. A backend that admits more requests while it
        # runs takes them itself. A lease is for one execution.
        one_at_a_time = (
            worker.executions.calls
            or self.slot.context.max_open is not None
            or self._lease is not None
        )
        one_at_a_time = one_at_a_time or self.prefetch_depth.suspended
        depth = 0 if worker.ending else 1 if one_at_a_time else self.prefetch_depth.depth
        if depth > 1 and not self.prefetch_depth.is_only_instance:
            depth = self.prefetch_depth.share(self._dispatcher.waiting, self._count_idle(self))
        if (
            self._concurrency is not None
            and depth
            and self._count_held() == 0
            and not self._concurrency.admits(self.feed)
        ):
            return
        if self._count_held() >= depth:
            self._dispatcher.wake()  # another instance may be able to use the wake-up
        while self._count_held() + len(batches) < depth:
            batch = self._next_batch()
            if batch is None:
                return
            batch.model = self._model
            if not worker.checks_strings and any(
                [request.unchecked_strings for request in batch.requests]
            ):
                self._checking += 1
                self._loop.create_task(self._check(worker, batch))
            else:
                batches.append(batch)

    def _count_held(self) -> int:
        """Return how many executions the worker has or is about to get."""
        return self._checking + (0 if self.worker is None else len(self.worker.executions.running))

    def _next_batch(self) -> Batch | None:
        if self._lease is not None and not self._lease.acquire():
            self._dispatcher.wake()  # another instance may be able to use the wake-up
            return None
        return self._dispatcher.take_or_idle(self.slot)

    async def _check(self, worker: Worker, batch: Batch) -> None:
        """Check large BYTES tensors on a thread."""
        admitted = False
        try:
            admitted = await asyncio.to_thread(self._callbacks.admit, batch)
        except Exception as error:
            self._callbacks.fail((batch,), error)
        finally:
            self._checking -= 1
        if admitted and self.worker is worker:
            self._send(worker, [batch])
            for request in batch.requests:
                if request.cancelled:
                    worker.cancel(request)
            return
        if admitted:
            self._take_back((batch,), self.broken or Unavailable(_ENDED))
        self.feed()

    def _send(self, worker: Worker, batches: list[Batch]) -> None:
        if not worker.executions.running:
            self._progress_ns = now_ns()
        try:
            worker.executions.send(batches)
            if self._concurrency is not None:
                self._concurrency.begin(self)
        except Exception as error:
            failure = (
                Internal(f"no shared memory for the inputs: {error}")
                if isinstance(error, OSError)
                else error
            )
            self._callbacks.fail(batches, failure)
            self._loop.call_soon(self.feed)
            return
        if self._limit_s and not self._limit_armed:
            self._limit_armed = True
            self._loop.call_later(self._limit_s, self._check_limit)

    async def _take_more(self, count: int) -> int | None:
        worker = self.worker
        if worker is None:  # no requests may join a warm-up
            return None
        batch = self._dispatcher.take(self.slot, count)
        if batch is None:
            return None
        batch.model = self._model
        try:
            strings = not worker.checks_strings and any(
                [request.unchecked_strings for request in batch.requests]
            )
            if strings and not await asyncio.to_thread(self._callbacks.admit, batch):
                return None
            if self.worker is not worker:
                raise Unavailable(_ENDED)  # noqa: TRY301
            (number,) = worker.executions.send([batch], joins=True)
        except asyncio.CancelledError:
            # The query ends with the worker, but these requests must be failed.
            self._callbacks.fail((batch,), Unavailable(_ENDED))
            raise
        except Exception as error:
            self._callbacks.fail((batch,), error)
            return None
        return number

    def _executions_ended(self, executions: Sequence[WorkerExecution]) -> None:
        if self._warmup is not None:
            self._warmup.execution_done()
            return
        self._progress_ns = now_ns()
        for execution in executions:
            took_ns = execution.batch.infer_end_ns - execution.batch.input_end_ns
            self.prefetch_depth.record(took_ns)
            if self._concurrency is not None:
                self._concurrency.record(took_ns)
        if self._concurrency is not None and self._count_held() == 0:
            self._concurrency.end(self)
        # Queue before releasing. Otherwise a waiting instance would always come first, whatever the
        # priorities.
        if (
            self._lease is not None
            and self._count_held() == 0
            and self._dispatcher.has_batch_for(self.slot)
        ):
            self._lease.renew()
        # At the end of the iteration, so that requests read until then can join the batch.
        self.slot.wake()

    def _check_limit(self) -> None:
        self._limit_armed = False
        worker = self.worker
        if worker is None or not worker.executions.running:
            return
        left_s = self._limit_s - (now_ns() - self._progress_ns) / 1e9
        if left_s <= 0:
            worker.kill(f"an execution took longer than the limit of {self._limit_s:g} s")
        else:
            self._limit_armed = True
            self._loop.call_later(left_s, self._check_limit)

    def _worker_died(self, error: TritonError) -> None:
        if self._warmup is not None:
            self._warmup.worker_died(error)
            return
        worker, self.worker = self.worker, None
        if worker is None:
            return
        self._dispatcher.unmark_idle(self.slot)
        if self._lease is not None:
            self._lease.release()
        if self._concurrency is not None:
            self._concurrency.end(self)
        self._model.log.error("%s", error)
        self._take_back(worker.unfinished(), error)
        self._dispatcher.lost(self.slot)
        self._fail(worker.executions.abandon(), error)
        if not self._stopped:
            self._pause = asyncio.Event()
            self._restart = self._loop.create_task(
                self._start_again((now_ns() - self._started_ns) / 1e9)
            )
            self._on_death()
        self._dispatcher.wake()  # another instance may be able to use the wake-up
        self.feed()  # it may have been the last work of the instance

    def restart_on_demand(self) -> None:
        """Restart as soon as there is work, because no other instance could do it."""
        if self._pause is not None and self.broken is None:
            self._pause_on_demand = True
            self._dispatcher.mark_idle(self.slot)

    def _end_pause(self, pause: asyncio.Event) -> None:
        if self._pause_on_demand:
            if self._dispatcher.has_batch_for(self.slot):
                pause.set()
                self._dispatcher.wake()  # an instance that has restarted may need the wake-up
            else:
                self._dispatcher.mark_idle(self.slot)

    async def _start_again(self, lived_s: float) -> None:
        delay_s = self._backoff.after_death_s(lived_s)
        while True:
            if delay_s and self._pause is not None:
                self._model.log.warning(
                    "%s is restarted in %g s, or earlier if requests wait for it",
                    self.slot.name,
                    delay_s,
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._pause.wait(), delay_s)
            self._pause, self._pause_on_demand = None, False
            if self.broken is None:
                self._dispatcher.unmark_idle(self.slot)
            try:
                await self._start_or_refuse()
            except Exception as error:
                self._model.log.error("%s failed to restart: %s", self.slot.name, error)
                self._mark_broken(f"it failed to restart: {error}")
                delay_s = self._backoff.after_failed_start_s()
                self._pause = asyncio.Event()
            else:
                self._model.log.info("%s is restarted", self.slot.name)
                self._dispatcher.restored(self.slot)
                self.feed()
                return

    async def _start_or_refuse(self) -> None:
        """Start the worker; refuse waiting requests if it takes much longer than the last start."""
        limit_s = max(_START_LIMIT_S, 2 * self._start_s)
        refusing = self._loop.call_later(
            limit_s, self._mark_broken, f"it did not restart within {limit_s:g} s"
        )
        try:
            await self.start()
        finally:
            refusing.cancel()

    def _mark_broken(self, reason: str) -> None:
        self.broken = Unavailable(f"Stub process '{self.slot.name}' is not healthy: {reason}")
        self.feed()

    def _take_back(self, batches: Sequence[Batch], error: TritonError) -> None:
        """Let other workers execute `batches`; fail requests that have lost two workers."""
        again: list[InferRequest] = []
        refused: list[InferRequest] = []
        for batch in batches:
            for request in batch.requests:
                if not request.finished:
                    request.lost_workers += 1
                    (again if request.lost_workers < _MAX_LOST_WORKERS else refused).append(request)
        if again:
            refused += self._dispatcher.requeue(again)
        self._fail(refused, error)

    def _refuse(self, error: TritonError) -> None:
        while (batch := self._dispatcher.take_or_idle(self.slot)) is not None:
            self._fail(batch.requests, error)

    @staticmethod
    def _fail(requests: Sequence[InferRequest], error: TritonError) -> None:
        failure = type(error)(error.message, FailureReason.BACKEND)
        for request in requests:
            if not request.finished:
                request.respond(InferResponse.failed(request, failure))
