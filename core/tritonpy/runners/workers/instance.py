"""One instance of a model that is a worker process: fed, watched, and started again when it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.clock import now_ns
from tritonpy.errors import FailureReason, Internal, TritonError, Unavailable
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.guards import BatchGuards
from tritonpy.runners.rings import Rings
from tritonpy.runners.warmup import MakeSamples
from tritonpy.runners.workers.backoff import Backoff
from tritonpy.runners.workers.crowd import Crowd
from tritonpy.runners.workers.executions import Execution
from tritonpy.runners.workers.permit import Permit
from tritonpy.runners.workers.pipelining import Pipelining
from tritonpy.runners.workers.questions import TakeMore
from tritonpy.runners.workers.slot import WorkerSlot
from tritonpy.runners.workers.warming import Warming
from tritonpy.runners.workers.worker import Worker
from tritonpy.types import Batch, InferRequest, InferResponse

_ENDED = "the worker of the model ended"
_MOST_LOST_WORKERS = 2  # that one request may have been on
_START_LIMIT_S = 30.0  # how long requests wait for a worker that is started again, where no other instance is left
MakeWorker = Callable[[Callable[[Sequence[Execution]], None], Callable[[TritonError], None], TakeMore], Worker]


class Instance:
    """Everything here runs on the loop's thread. `hopeless()` says that no instance of the model is left that could serve what waits,
    `spare(self)` how many others have nothing to do.

    `permit` makes what asks the rate limiter, and calls what it is given when it has a permission; None: there is nothing to ask.
    `crowd` says whether it may execute beside the others, None: always. `died()` is called when the process is gone and is to be started again.
    """

    def __init__(
        self,
        model: ModelContext,
        context: InstanceContext,
        loop: asyncio.AbstractEventLoop,
        rings: Rings,
        dispatcher: Dispatcher,
        guards: BatchGuards,
        permit: Callable[[Callable[[], None]], Permit] | None,
        prefetch: bool,
        alone: bool,
        crowd: Crowd | None,
        limit_s: float,
        make: MakeWorker,
        hopeless: Callable[[], bool],
        spare: Callable[[Instance], int],
        died: Callable[[], None],
        samples: MakeSamples | None = None,
    ) -> None:
        self.slot = WorkerSlot(context, loop, rings, self.feed)
        self.worker: Worker | None = None
        self.broken: TritonError | None = None  # why the last attempt to start it again failed
        self._model = model
        self._loop = loop
        self._dispatcher = dispatcher
        self._guards = guards
        self._permit = None if permit is None else permit(self.feed)
        self.pipelining = Pipelining(prefetch, alone)
        self._crowd = crowd
        self._limit_s = limit_s
        self._limit_armed = False
        self._progress_ns = 0
        self._checking = 0
        self._make = make
        self._hopeless = hopeless
        self._spare = spare
        self._tell_died = died
        self._samples = samples
        self._warming: Warming | None = None
        self._backoff = Backoff()
        self._born_ns = 0
        self._restart: asyncio.Task[None] | None = None
        self._pause: asyncio.Event | None = None  # before it is started again; set to end it early
        self._pause_on_demand = False  # it ends as soon as there is something to do
        self._start_s = 0.0  # how long its last start took
        self._serves = False
        self._done_with = asyncio.Event()  # everything that was bound to it
        self._stopped = False
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and warm it up. Raises what it says when it cannot run the model."""
        began_ns = now_ns()
        worker = self._make(self._done, self._died, self._take_more)
        await worker.start()
        if self._samples is not None and not self.slot.context.passive:
            await self._warm_up(worker, self._samples)
        self.worker, self.broken = worker, None
        self._born_ns = now_ns()
        self._start_s = (self._born_ns - began_ns) / 1e9

    async def _warm_up(self, worker: Worker, samples: MakeSamples) -> None:
        self._warming = warming = Warming(self._model, self.slot, worker, self._limit_s)
        try:
            await warming.run(await asyncio.to_thread(samples))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                worker.kill("the model was unloaded")  # it may be in the middle of an execution without end
            await worker.stop()
            raise
        finally:
            self._warming = None

    def serve(self) -> None:
        """Take requests from now on."""
        self._serves = True
        self.feed()

    async def leave(self) -> None:
        """End the process when everything that is bound to the instance is done."""
        if self._serves:
            self._dispatcher.leave(self.slot)
            self.feed()
            await self._done_with.wait()
        await self.stop()

    async def stop(self) -> None:
        """End the process, gracefully, and do not start it again. Returns when it is gone, also where somebody else ends it already."""
        self._stopped = True
        self._done_with.set()
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
            self._fail(worker.executions.give_up(), Unavailable("the model was unloaded"))
        if self._crowd is not None:
            self._crowd.ended(self)
        if self._permit is not None:
            self._permit.release()

    def feed(self) -> None:
        """Give the worker what it may have."""
        if self._stopped or not self._serves:
            return
        if self.slot.gone and self._held() == 0:
            self._done_with.set()
            return
        batches: list[Batch] = []
        failure: Exception | None = None
        try:
            if self.worker is not None:
                self._take(self.worker, batches)
            elif self._pause is not None and self.broken is None:
                self._end_pause(self._pause)
            elif self.broken is not None and (self.slot.leaving or self._hopeless()):
                self._refuse(self.broken)
        except Exception as error:
            failure = error
        if self.worker is not None and batches:
            self._send(self.worker, batches)
        elif self._permit is not None and self._held() == 0:
            self._permit.release()
        if failure is not None:  # a scheduler or limiter that raises must not leave its requests without an answer
            self._dispatcher.rest(self.slot)
            self._guards.drop(failure)

    def is_spare(self) -> bool:
        """Say whether it could begin an execution now, and has none."""
        able = self._serves and not self._stopped and self.worker is not None and not self.worker.ending
        return able and not self.slot.leaving and self._permit is None and self._held() == 0

    def cancel(self, request: InferRequest) -> None:
        """Tell the worker that nobody waits for `request` any more."""
        if self.worker is not None:
            self.worker.cancel(request)

    def _take(self, worker: Worker, batches: list[Batch]) -> None:
        # Behind an execution that waits for a call, a batch could be what the called model waits for; one that admits more while it
        # runs asks for them itself; and what the limiter lends is for one execution.
        in_turn = worker.executions.calls or self.slot.context.max_open is not None or self._permit is not None
        in_turn = in_turn or self.pipelining.suspended
        depth = 0 if worker.ending else 1 if in_turn else self.pipelining.depth
        if depth > 1 and not self.pipelining.alone:
            depth = self.pipelining.share(self._dispatcher.waiting, self._spare(self))
        if self._crowd is not None and depth and self._held() == 0 and not self._crowd.admits(self.feed):
            return
        if self._held() >= depth:
            self._dispatcher.wake()  # another instance may be free to do what this one was rung for
        while self._held() + len(batches) < depth:
            batch = self._next_batch()
            if batch is None:
                return
            batch.model = self._model
            if not worker.checks_strings and any([request.unchecked_strings for request in batch.requests]):
                self._checking += 1
                self._loop.create_task(self._check(worker, batch))
            else:
                batches.append(batch)

    def _held(self) -> int:
        """Return how many executions the worker has, or is about to have."""
        return self._checking + (0 if self.worker is None else len(self.worker.executions.running))

    def _next_batch(self) -> Batch | None:
        if self._permit is not None and not self._permit.take():
            self._dispatcher.wake()  # another instance may be free to do what this one was rung for
            return None
        return self._dispatcher.take_or_idle(self.slot)

    async def _check(self, worker: Worker, batch: Batch) -> None:
        """Walk large BYTES tensors off the loop."""
        admitted = False
        try:
            admitted = await asyncio.to_thread(self._guards.admit, batch)
        except Exception as error:
            self._guards.fail((batch,), error)
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
            if self._crowd is not None:
                self._crowd.began(self)
        except Exception as error:
            failure = Internal(f"no shared memory for the inputs: {error}") if isinstance(error, OSError) else error
            self._guards.fail(batches, failure)
            self._loop.call_soon(self.feed)
            return
        if self._limit_s and not self._limit_armed:
            self._limit_armed = True
            self._loop.call_later(self._limit_s, self._check_limit)

    async def _take_more(self, count: int) -> int | None:
        worker = self.worker
        if worker is None:  # it is warmed up: nothing joins that
            return None
        batch = self._dispatcher.take(self.slot, count)
        if batch is None:
            return None
        batch.model = self._model
        try:
            strings = not worker.checks_strings and any([request.unchecked_strings for request in batch.requests])
            if strings and not await asyncio.to_thread(self._guards.admit, batch):
                return None
            if self.worker is not worker:
                raise Unavailable(_ENDED)  # noqa: TRY301
            (number,) = worker.executions.send([batch], joins=True)
        except asyncio.CancelledError:  # the question goes with the worker, these requests must not
            self._guards.fail((batch,), Unavailable(_ENDED))
            raise
        except Exception as error:
            self._guards.fail((batch,), error)
            return None
        return number

    def _done(self, executions: Sequence[Execution]) -> None:
        if self._warming is not None:
            self._warming.over()
            return
        self._progress_ns = now_ns()
        for execution in executions:
            took_ns = execution.batch.infer_end_ns - execution.batch.input_end_ns
            self.pipelining.took(took_ns)
            if self._crowd is not None:
                self._crowd.took(took_ns)
        if self._crowd is not None and self._held() == 0:
            self._crowd.ended(self)
        # It stands in line before it lets go: otherwise who waits would always come before it, whatever the priorities.
        if self._permit is not None and self._held() == 0 and self._dispatcher.wants(self.slot):
            self._permit.again()
        self.slot.ring()  # at the end of the turn: what the loop is about to read may join

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

    def _died(self, error: TritonError) -> None:
        if self._warming is not None:
            self._warming.died(error)
            return
        worker, self.worker = self.worker, None
        if worker is None:
            return
        self._dispatcher.withdraw(self.slot)
        if self._permit is not None:
            self._permit.release()
        if self._crowd is not None:
            self._crowd.ended(self)
        self._model.log.error("%s", error)
        self._take_back(worker.unfinished(), error)
        self._dispatcher.lost(self.slot)
        self._fail(worker.executions.give_up(), error)
        if not self._stopped:
            self._pause = asyncio.Event()
            self._restart = self._loop.create_task(self._start_again((now_ns() - self._born_ns) / 1e9))
            self._tell_died()
        self._dispatcher.wake()  # it may have been rung for something that another instance can do
        self.feed()  # it may have been the last that it was to do

    def end_pause_on_demand(self) -> None:
        """Start again as soon as there is something to do: no other instance could do it."""
        if self._pause is not None and self.broken is None:
            self._pause_on_demand = True
            self._dispatcher.rest(self.slot)

    def _end_pause(self, pause: asyncio.Event) -> None:
        if self._pause_on_demand:
            if self._dispatcher.wants(self.slot):
                pause.set()
                self._dispatcher.wake()  # an instance that is back by now may have been the one to ring
            else:
                self._dispatcher.rest(self.slot)

    async def _start_again(self, lived_s: float) -> None:
        delay_s = self._backoff.after_death_s(lived_s)
        while True:
            if delay_s and self._pause is not None:
                self._model.log.warning(
                    "%s is started again in %g s, or when requests wait for it alone", self.slot.name, delay_s
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._pause.wait(), delay_s)
            self._pause, self._pause_on_demand = None, False
            if self.broken is None:
                self._dispatcher.withdraw(self.slot)
            try:
                await self._start_or_refuse()
            except Exception as error:
                self._model.log.error("%s failed to start again: %s", self.slot.name, error)
                self._break(f"it failed to start again: {error}")
                delay_s = self._backoff.after_failed_start_s()
                self._pause = asyncio.Event()
            else:
                self._model.log.info("%s is started again", self.slot.name)
                self._dispatcher.restored(self.slot)
                self.feed()
                return

    async def _start_or_refuse(self) -> None:
        """Start; refuse what waits, as after a start that failed, while that takes much longer than the last start did."""
        limit_s = max(_START_LIMIT_S, 2 * self._start_s)
        refusing = self._loop.call_later(limit_s, self._break, f"it did not start again within {limit_s:g} s")
        try:
            await self.start()
        finally:
            refusing.cancel()

    def _break(self, reason: str) -> None:
        self.broken = Unavailable(f"Stub process '{self.slot.name}' is not healthy: {reason}")
        self.feed()

    def _take_back(self, batches: Sequence[Batch], error: TritonError) -> None:
        """Let other workers execute what this one did not, except requests that were on two workers when these ended."""
        again: list[InferRequest] = []
        refused: list[InferRequest] = []
        for batch in batches:
            for request in batch.requests:
                if not request.answered:
                    request.lost_workers += 1
                    (again if request.lost_workers < _MOST_LOST_WORKERS else refused).append(request)
        if again:
            refused += self._dispatcher.take_back(again)
        self._fail(refused, error)

    def _refuse(self, error: TritonError) -> None:
        while (batch := self._dispatcher.take_or_idle(self.slot)) is not None:
            self._fail(batch.requests, error)

    @staticmethod
    def _fail(requests: Sequence[InferRequest], error: TritonError) -> None:
        failure = type(error)(error.message, FailureReason.BACKEND)
        for request in requests:
            if not request.answered:
                request.respond(InferResponse.failed(request, failure))
