"""Runs the requests of shards: readers, requests in flight, retries, and one writer.

Readers convert rows and send them. A block is written when all of its requests have results. Rows
that wait anywhere count against one limit in bytes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from tritonpy import Internal, ResourceExhausted, TritonError, Unavailable
from tritonpy_batch.limits import ByteLimit, ConcurrencyLimit, JobStopped
from tritonpy_batch.options import JobFailed
from tritonpy_batch.targets import JobTarget, ServerLost
from tritonpy_batch.tasks import RowBlock, Task, Work

_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 5.0
_REPEATERS = 8
_NO_ROOM = (Unavailable, ResourceExhausted)


class BlockState:
    """A block on its way: `number` within its shard, and how many requests are open.

    A state without a block follows the last block of a shard.
    """

    def __init__(self, shard: Any, number: int, block: RowBlock | None) -> None:
        self.shard = shard
        self.number = number
        self._block = block
        self.nbytes = 0 if block is None else block.nbytes
        self.open_works = 0 if block is None else len(block.works)
        self.lock = threading.Lock()

    @property
    def is_end(self) -> bool:
        """Whether the shard has no more blocks."""
        return self._block is None

    @property
    def block(self) -> RowBlock:
        """The block."""
        if self._block is None:
            raise ValueError("the end of a shard has no block")
        return self._block


class RequestPipeline:
    """Sends the blocks of all shards to `target` and passes complete ones to `write`.

    `failed(error)` is called when the job cannot go on.
    """

    def __init__(
        self,
        task: Task,
        target: JobTarget,
        limit: ConcurrencyLimit,
        memory: ByteLimit,
        retries: int,
        reconnect_s: float,
        write: Callable[[BlockState], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._task = task
        self._target = target
        self._limit = limit
        self._memory = memory
        self._retries = retries
        self._reconnect_s = reconnect_s
        self._write = write
        self._failed = failed
        self._complete: queue.SimpleQueue[BlockState | None] = queue.SimpleQueue()
        self._to_repeat: queue.SimpleQueue[tuple[BlockState, Work, TritonError] | None] = (
            queue.SimpleQueue()
        )
        # two requests that are not full could be joined by the server, differently in each run
        self._partial = threading.Semaphore(1)
        self._writer = threading.Thread(target=self._write_blocks, name="batch-writer", daemon=True)
        self._repeaters = [
            threading.Thread(target=self._repeat_works, name=f"batch-retries-{number}", daemon=True)
            for number in range(_REPEATERS)
        ]
        self.batches = self.batched_rows = 0

    def start(self) -> None:
        """Start the writer, and the threads that repeat what failed."""
        for thread in (self._writer, *self._repeaters):
            thread.start()

    def send(self, state: BlockState) -> None:
        """Send the requests of a block; waits while too many are in flight. Raises JobStopped."""
        self._memory.acquire(state.nbytes)
        if not state.open_works:
            self._complete.put(state)
            return
        for work in tuple(state.block.works):
            partial = len(work.rows) < self._task.batch_size
            if partial:
                self._partial.acquire()
            try:
                self._limit.acquire()
            except JobStopped:
                if partial:
                    self._partial.release()
                raise
            self._submit(state, work, partial)

    def close(self) -> None:
        """Wait for what the threads do now, and end them. All blocks must be complete."""
        for _ in self._repeaters:
            self._to_repeat.put(None)
        for thread in self._repeaters:
            thread.join()
        self._complete.put(None)
        self._writer.join()

    def _submit(self, state: BlockState, work: Work, partial: bool) -> None:
        self.batches += 1
        self.batched_rows += len(work.rows)

        def done(result: Any, error: TritonError | None) -> None:
            self._limit.release(len(work.rows))
            if partial:
                self._partial.release()
            if error is not None:
                self._to_repeat.put((state, work, error))
            else:
                self._finish(state, work, result)

        try:
            self._target.submit(work, done)
        except Exception as error:
            done(None, Internal(f"{type(error).__name__}: {error}"))

    def _finish(self, state: BlockState, work: Work, result: Any) -> None:
        with state.lock:
            if result is not None:
                state.block.results.append((work.rows, result))
            state.open_works -= 1
            complete = not state.open_works
        if complete:
            self._complete.put(state)

    def _write_blocks(self) -> None:
        while (state := self._complete.get()) is not None:
            try:
                self._write(state)
            except BaseException as error:
                self._failed(error)
            finally:
                self._memory.release(state.nbytes)

    def _repeat_works(self) -> None:
        while (failed := self._to_repeat.get()) is not None:
            state, work, error = failed
            try:
                self._repeat(state, work, error)
                self._finish(state, work, None)
            except BaseException as problem:
                self._failed(problem)

    def _repeat(self, state: BlockState, work: Work, error: TritonError) -> None:
        """Retry a failed request, then its halves, until single rows are left that fail.

        A server without room is given time. For any other error only single rows are retried.
        """
        lost_since = time.monotonic()
        delay, attempt = _FIRST_DELAY_S, 1
        while attempt <= self._retries and isinstance(error, (*_NO_ROOM, Internal)):
            if isinstance(error, _NO_ROOM):
                self._limit.pause(delay)
                delay = min(delay * 2, _LONGEST_DELAY_S)
            elif len(work.rows) > 1:
                break
            result, found = self._call(work)
            if found is None:
                self._record(state, work, result, attempt + 1)
                return
            error = found
            if not isinstance(error, ServerLost):
                attempt += 1
            elif time.monotonic() - lost_since > self._reconnect_s:
                raise JobFailed(f"the server is lost for {self._reconnect_s:g} s: {error.message}")
        if len(work.rows) == 1:
            with state.lock:
                state.block.errors[work.rows[0]] = error.message
                state.block.attempts[work.rows[0]] = attempt
            return
        middle = len(work.rows) // 2
        for start, stop in ((0, middle), (middle, len(work.rows))):
            part = self._task.part(work, start, stop)
            result, found = self._call(part)
            if found is None:
                self._record(state, part, result, attempt + 1)
            else:
                self._repeat(state, part, found)

    def _record(self, state: BlockState, work: Work, result: Any, attempts: int) -> None:
        with state.lock:
            state.block.results.append((work.rows, result))
            state.block.attempts |= dict.fromkeys(work.rows, attempts)

    def _call(self, work: Work) -> tuple[Any, TritonError | None]:
        """Send a request and wait for its result."""
        answers: queue.SimpleQueue[tuple[Any, TritonError | None]] = queue.SimpleQueue()
        self._target.submit(work, lambda result, error: answers.put((result, error)))
        return answers.get()
