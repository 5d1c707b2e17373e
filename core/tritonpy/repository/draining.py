"""Draining: versions that no longer serve finish their requests, then are closed."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from tritonpy.api.repo_agent import AgentAction
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.repository.model_table import UNLOADED, ModelTable, State
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.server.interpreter import return_free_memory

log = logging.getLogger("tritonpy.repository")

# Time for executions to finish after the timeout; they cannot be interrupted.
GRACE_S = 1.0
THREADS = 16  # threads that close the idle models of one call


# A full collection holds the GIL while it visits every object. This limits its share of time.
MAX_TIME_SHARE = 1 / 500
YOUNG_GENERATION = 1  # covers models that were loaded and closed since the last collections


def collect_young() -> None:
    """Collect recently created objects."""
    gc.collect(YOUNG_GENERATION)


class ThrottledCollector:
    """Collects garbage after models are closed, with pauses in proportion to the collection time.

    During a pause, only young objects are collected. A full collection follows at its end.
    """

    def __init__(
        self,
        collect: Callable[[], object] = gc.collect,
        young: Callable[[], object] = collect_young,
        clock: Callable[[], float] = time.monotonic,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._collect = collect
        self._collect_young = young
        self._clock = clock
        self._thread_time = thread_time
        self._pause_s = 0.0
        self._paused_until = clock()
        self._timer: threading.Timer | None = None
        self._guard = threading.Lock()

    def collect(self) -> None:
        """Collect now, or once at the end of the pause for all calls until then."""
        if self._is_paused():
            self._collect_young()
        else:
            self._run()

    def _is_paused(self) -> bool:
        """Return whether a pause is on, and schedule a collection at its end."""
        with self._guard:
            wait_s = self._paused_until - self._clock()
            if wait_s > 0 and self._timer is None:
                self._timer = threading.Timer(wait_s, self._run)
                self._timer.daemon = True
                self._timer.start()
            return wait_s > 0

    def close(self) -> None:
        """Cancel the scheduled collection."""
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _run(self) -> None:
        with self._guard:
            self._timer = None  # a later call may be too late for this collection
            self._paused_until = self._clock() + self._pause_s
        started = self._thread_time()
        self._collect()
        with self._guard:
            self._pause_s = (self._thread_time() - started) / MAX_TIME_SHARE
            self._paused_until = self._clock() + self._pause_s


@dataclass(frozen=True, slots=True, eq=False)
class DrainJob:
    """Versions of one model to close, and what they were loaded from.

    `is_final` says that nothing is loaded from `prepared` any more.
    """

    name: str
    models: Sequence[LoadedModel]
    prepared: PreparedModel | None = None
    is_final: bool = True


class Drainer:
    """Closes models on its own threads.

    A model with requests in flight gets its own thread, so that a long request delays only its own
    model and the members of its ensemble. Idle models are closed by `THREADS` threads, ensembles
    before their members.
    """

    def __init__(self, table: ModelTable, unloaded: Callable[[LoadedModel], None]) -> None:
        self._table = table
        self._unloaded = unloaded
        self._collector = ThrottledCollector()
        self._threads: set[threading.Thread] = set()
        self._active_jobs: set[DrainJob] = set()
        self._sources: Counter[int] = Counter()  # unfinished jobs by `id(prepared)`
        self._ensembles: dict[LoadedModel, list[LoadedModel]] = {}  # unfinished ensembles by member
        self._lock = threading.Lock()

    def drain(self, *jobs: DrainJob) -> None:
        """Close the models and then free what they were loaded from; returns immediately.

        Members are closed after their ensemble if they are drained later or in the same call.
        """
        threads = []
        with self._lock:
            for job in jobs:
                self._register(job)
            for queue in self._queues(jobs):
                name = f"unload {queue[0].name}" if len(queue) == 1 else "unload"
                threads.append(
                    threading.Thread(target=self._run, args=(queue,), name=name, daemon=True)
                )
            self._threads.update(threads)
            for thread in threads:  # under the lock: `wait` must find only started threads
                thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for all jobs; return whether they finished within `timeout_s`.

        After that, waiting requests get an error, and executions get `GRACE_S` to finish.
        """
        if self._join(timeout_s):
            return True
        with self._lock:
            late = [model for job in self._active_jobs for model in job.models]
        in_time = not any(model.in_flight for model in late)
        for model in late:
            model.fail_waiting()
        return self._join(GRACE_S) and in_time

    def close(self) -> None:
        """Stop collecting garbage. Jobs that still run finish on their own."""
        self._collector.close()

    def _join(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)

    def _register(self, job: DrainJob) -> None:
        prepared = job.prepared
        if prepared is not None:
            self._sources[id(prepared)] += 1
            if job.is_final:
                prepared.finished = True
                prepared.begin_unload()
        self._active_jobs.add(job)
        for model in job.models:
            for member in {*model.members.values()}:
                self._ensembles.setdefault(member, []).append(model)

    def _finish(self, job: DrainJob) -> bool:
        """Record that the models of `job` are closed; return whether to free `job.prepared`."""
        with self._lock:
            self._active_jobs.discard(job)
            for model in job.models:
                for member in {*model.members.values()}:
                    self._ensembles[member].remove(model)
                    if not self._ensembles[member]:
                        del self._ensembles[member]
            prepared = job.prepared
            if prepared is None:
                return False
            self._sources[id(prepared)] -= 1
            remaining = self._sources[id(prepared)]
            if not remaining:
                del self._sources[id(prepared)]
            return prepared.finished and not remaining

    def _queues(self, jobs: Sequence[DrainJob]) -> list[deque[DrainJob]]:
        """Return the queue of each thread. Several threads may share a queue."""
        queues, idle = [], []
        for job in jobs:
            models = [
                *job.models,
                *(each for model in job.models for each in self._ensembles.get(model, ())),
            ]
            if len(jobs) <= THREADS or any(model.in_flight for model in models):
                queues.append(deque([job]))
            else:
                idle.append(job)
        shared = deque(_ensembles_first(idle))
        return queues + [shared] * min(THREADS, len(shared))

    def _run(self, queue: deque[DrainJob]) -> None:
        try:
            while self._drain_next(queue):
                pass
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _drain_next(self, queue: deque[DrainJob]) -> bool:
        """Drain the next job of `queue`; return whether there was one."""
        try:
            job = queue.popleft()
        except IndexError:
            return False
        name, prepared = job.name, job.prepared
        try:
            self._drain(job)
        except Exception:
            log.exception("failed to unload '%s'", name)
        is_last = self._finish(job)
        del job
        if prepared is not None and is_last:
            _release(name, prepared)
        if not queue:
            # The models are in reference cycles. The garbage collector, tuned for request
            # processing, would keep them for a long time.
            self._collector.collect()
            return_free_memory()
        if prepared is not None and prepared.reservation is not None:
            prepared.reservation.close() if is_last else prepared.reservation.versions_unloaded()
        return True

    def _drain(self, job: DrainJob) -> None:
        name = job.name
        if job.prepared is not None and job.is_final:
            job.prepared.agents.notify(AgentAction.UNLOAD)
        for model in job.models:
            self._wait_for_ensembles(model)
            self._close(model)
            self._table.finish_unload(name, model.version, State.UNAVAILABLE, UNLOADED)
            self._unloaded(model)
            log.info("successfully unloaded '%s' version %d", name, model.version)

    def _wait_for_ensembles(self, member: LoadedModel) -> None:
        """Wait for the draining ensembles of `member`, which still serves their requests."""
        with self._lock:
            ensembles = tuple(self._ensembles.get(member, ()))
        for ensemble in ensembles:
            ensemble.drained.wait()

    @staticmethod
    def _close(model: LoadedModel) -> None:
        try:
            model.close()
        except Exception:
            log.exception("version %d of '%s' failed to close", model.version, model.name)


def _ensembles_first(jobs: Sequence[DrainJob]) -> list[DrainJob]:
    """Return `jobs` in an order in which every ensemble comes before its members."""
    job_of = {model: job for job in jobs for model in job.models}
    before: dict[DrainJob, set[DrainJob]] = {job: set() for job in jobs}
    for ensemble, job in job_of.items():
        for member in ensemble.members.values():
            if job_of.get(member, job) is not job:
                before[job_of[member]].add(job)
    return list(TopologicalSorter(before).static_order())


def _release(name: str, prepared: PreparedModel) -> None:
    prepared.agents.notify(AgentAction.UNLOAD_COMPLETE)
    try:
        prepared.release()
    except Exception:
        log.exception("the files of '%s' were not released", name)
