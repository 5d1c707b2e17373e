"""An instance in this process that uses pooled threads and holds none while it is idle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import thread_time_ns
from typing import TYPE_CHECKING

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.batch_callbacks import BatchCallbacks
from tritonpy.runners.dispatcher import Dispatcher, Step
from tritonpy.runners.inline_policy import MAX_NS, SLOW_NS, InlinePolicy, size_class
from tritonpy.runners.local_instance import LocalInstance
from tritonpy.runners.rate_limit_lease import PooledRateLimitLease
from tritonpy.runners.slot import PooledSlot
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.runners.wakeups import Wakeups
from tritonpy.runners.warmup import MakeSamples
from tritonpy_types import Batch
from tritonpy_types.clock import now_ns

if TYPE_CHECKING:
    from tritonpy.api.rate_limiter import RateLimiter

BUSY_AGE_NS = 200_000  # a younger reading of the processor time, a system call, is used again


def may_share_threads(
    model: ModelContext, backend: type[Backend], context: InstanceContext
) -> bool:
    """Return whether an instance may run on shared threads.

    The backend must be callable from any thread, and its executions must end by themselves.
    """
    waits = model.config.model_transaction_policy.decoupled
    return backend.runs_on_any_thread and context.kind == "CPU" and not waits


class PooledInstance(LocalInstance[PooledSlot]):
    """An instance that occupies a thread of `threads` only while it has work.

    With `inline`, the event loop may execute for it (see `InlinePolicy`). `limiter` and
    `lease_name` are given if a rate limiter limits the instance.
    """

    def __init__(
        self,
        model: ModelContext,
        kind: type[Backend],
        context: InstanceContext,
        dispatcher: Dispatcher,
        callbacks: BatchCallbacks,
        samples: MakeSamples | None,
        on_end: Callable[[], None],
        threads: ThreadPool,
        wakeups: Wakeups,
        inline: bool,
        limiter: RateLimiter | None = None,
        lease_name: str = "",
    ) -> None:
        super().__init__(model, kind, context, dispatcher, callbacks, samples, on_end)
        self._threads = threads
        self._inline_policy = InlinePolicy() if inline else None
        self._lease: PooledRateLimitLease | None = None
        if limiter is not None:
            self._lease = PooledRateLimitLease(
                limiter, lease_name, dispatcher.lock, lambda: threads.run(self._work)
            )
        self._over = threading.Lock()  # released when the instance has no owner any more
        self._over.acquire()
        self.slot = PooledSlot(
            context,
            threads,
            wakeups,
            self._work,
            self._run_on_loop,
            self._over.release,
            self._inline_policy,
        )
        self._builder: threading.Thread | None = None
        self._error: BaseException | None = None
        # The last reading of the event loop's processor time, and when it was.
        self._busy_ns = self._busy_at_ns = 0
        self._drained: Future[None] | None = None  # set when the instance is draining
        self._closed = False

    def start(self, *, alone: bool) -> None:
        if alone:
            self._build()
        else:
            self._builder = threading.Thread(
                target=self._build, name=self.context.name, daemon=True
            )
            self._builder.start()

    def wait_built(self) -> BaseException | None:
        builder, self._builder = self._builder, None
        if builder is not None:
            builder.join()
        return self._error

    def _build(self) -> None:
        try:
            self._backend = self._build_backend()
        except BaseException as error:
            self._error = error

    def alive(self) -> bool:
        return self._backend is not None

    def serve(self) -> None:
        self._is_serving = not self.context.passive
        if not self._is_serving:
            return
        if self._dispatcher.mark_idle(self.slot):
            self._dispatcher.wake()
        else:
            self._over.release()

    def disable_inline(self) -> None:
        if self._inline_policy is not None:
            self._inline_policy.disable()

    def drain(self) -> Future[None]:
        drained: Future[None] = Future()
        self._drained = drained
        if self._is_serving:
            self._dispatcher.drain(self.slot)
        else:
            self._threads.run(self._close)
        return drained

    def stop(self) -> None:
        self.wait_built()
        if self._lease is not None and self._lease.cancel():
            self._over.release()
        if self._is_serving:
            self._over.acquire()
        elif self._drained is not None:
            self._drained.result()
        self._close()

    def _close(self) -> None:
        """Close the backend once and resolve the future of the end."""
        with self._dispatcher.lock:
            if self._closed:
                return
            self._closed = True
        # Free the backend's resources now. This object is part of reference cycles, which the
        # collector finds late, or never if they date from startup.
        backend, self._backend = self._backend, None
        if backend is not None:
            self._close_backend(backend)
        self._on_end()
        if self._drained is not None:
            self._drained.set_result(None)

    def _end(self) -> None:
        """End the instance as its last owner."""
        if self._drained is not None:
            self._close()
        self._over.release()

    def _work(self) -> None:
        """Execute all available work as the owner of the instance, on a thread of the pool."""
        try:
            self._execute_all()
        except Exception as error:
            # Fail waiting requests when a scheduler or limiter raises
            # first, so that requests that arrive meanwhile wake it.
            rests = self._dispatcher.mark_idle(self.slot)
            self._callbacks.drop(error)
            if not rests:
                self._end()

    def _execute_all(self) -> None:
        dispatcher, slot, lease, threads = self._dispatcher, self.slot, self._lease, self._threads
        if lease is not None and lease.held and not self._execute_with_lease(lease):
            return
        while (step := dispatcher.next_step(slot)) is Step.EXECUTE:
            if lease is None:
                self._execute_next()
            elif not self._execute_with_lease(lease):
                return
            if threads.saturated:  # other instances wait for a thread
                threads.run(self._work)
                return
        if step is Step.END:
            self._end()

    def _execute_with_lease(self, lease: PooledRateLimitLease) -> bool:
        """Execute while the limiter permits it.

        Returns False if the instance must wait for the limiter; it then has no owner.
        """
        may = lease.held or lease.acquire()
        while may:
            try:
                self._execute_next()
            except BaseException:
                lease.release()
                raise
            if not self._dispatcher.has_batch_for(self.slot):
                lease.release()
                return True
            # Queue before releasing. Otherwise a waiting instance would always come first, whatever
            # the priorities.
            may = lease.renew()
        self._dispatcher.wake()  # another instance may be able to execute meanwhile
        return False

    def _execute_next(self) -> None:
        batch = self._next_batch(UNBOUNDED)
        if batch is None:
            return
        if self._inline_policy is None or self._dispatcher.waiting:
            self._execute(self.backend, batch)
        else:  # no request waits, so the times are comparable to inline executions
            self._execute_and_record(self._inline_policy, batch)

    def _run_on_loop(self, batch: Batch | None) -> None:
        """Execute `batch` and other requests inline as the owner, as far as the policy allows.

        After `MAX_NS` the loop reads its sockets before it goes on. Handing the rest over to a
        thread would cost more: both would compete for the interpreter. A thread gets what the
        policy does not allow, and the rest if the loop ends.
        """
        inline_policy, slot = self._inline_policy, self.slot
        assert inline_policy is not None, (  # noqa: S101
            "an instance without an inline policy runs on the event loop: this is a bug"
        )
        end_ns = now_ns() + MAX_NS
        while True:
            batch = batch or self._take_on_loop(inline_policy)
            if batch is None or not self._run_inline(inline_policy, batch):
                slot.assigned = batch
                break
            if self._dispatcher.mark_idle_if_no_requests(slot):
                return
            batch = None
            if now_ns() > end_ns:
                if slot.continue_on_loop():
                    return
                break
        self._dispatcher.resume_on_thread(slot)

    def _take_on_loop(self, inline_policy: InlinePolicy) -> Batch | None:
        if not inline_policy.has_candidates:
            return None
        try:
            return self._dispatcher.take(self.slot, UNBOUNDED)
        except Exception as error:  # as in `_work`
            self._callbacks.drop(error)
            return None

    def _run_inline(self, inline_policy: InlinePolicy, batch: Batch) -> bool:
        """Execute `batch` inline if the policy allows it; return whether it was executed."""
        size = size_class(batch)
        if not inline_policy.allows(size):
            return False
        for request in batch.requests:
            if request.unchecked_strings:
                return False
        batch.model = self._model
        begin_ns = now_ns()
        if begin_ns - self._busy_at_ns > BUSY_AGE_NS:
            self._busy_ns, self._busy_at_ns = thread_time_ns(), begin_ns
        self._execute(self.backend, batch)
        ns = busy_ns = now_ns() - begin_ns
        if ns > SLOW_NS:  # else the processor time, which is never longer, does not matter
            # The time before the execution counts as busy, so this is a lower bound.
            busy_ns = thread_time_ns() - self._busy_ns - (begin_ns - self._busy_at_ns)
        inline_policy.record(size, busy_ns, ns, on_loop=True)
        return True

    def _execute_and_record(self, inline_policy: InlinePolicy, batch: Batch) -> None:
        size = size_class(batch)
        begin_ns, busy_ns = now_ns(), thread_time_ns()
        self._execute(self.backend, batch)
        inline_policy.record(size, thread_time_ns() - busy_ns, now_ns() - begin_ns, on_loop=False)
