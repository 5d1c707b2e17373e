"""The run of a job: readers take shards, and one writer commits their parts."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy_batch.conversion import NullValue
from tritonpy_batch.inputs import Shard
from tritonpy_batch.job_folder import JobFolder, PartRecord, sha256_of
from tritonpy_batch.limits import ByteLimit, ConcurrencyLimit, JobStopped
from tritonpy_batch.options import BatchOptions, JobFailed, allowed_errors
from tritonpy_batch.part_writer import PartWriter
from tritonpy_batch.pipeline import BlockState, RequestPipeline
from tritonpy_batch.progress import ProgressView
from tritonpy_batch.rows import SourceRows, regroup
from tritonpy_batch.summary import JobProgress, JobSummary, RateSample
from tritonpy_batch.tasks import RowBlock

if TYPE_CHECKING:
    from tritonpy_batch.job import JobPlan

_MAX_READERS = 4
_POLL_S = 0.25
_RETRY_CLAIM_S = 1.0
_LEAST_ROWS_FOR_SHARE = 1000
_FIRST_ERRORS = 5
_MAX_SAMPLES = 2000


class ShardRun:
    """A shard in work: blocks that wait for their turn, and the part that grows."""

    def __init__(self, shard: Shard, file: Path, writer: PartWriter) -> None:
        self.shard = shard
        self.file = file
        self.writer = writer
        self.waiting: dict[int, BlockState] = {}
        self.next = 0
        self.rows = self.errors = 0


class JobRun:
    """Runs the shards that have no part yet."""

    def __init__(
        self,
        plan: JobPlan,
        shards: list[Shard],
        job_folder: JobFolder,
        options: BatchOptions,
        view: ProgressView,
    ) -> None:
        self._plan = plan
        self._job_folder = job_folder
        self._options = options
        self._view = view
        number, count = options.share
        self._shards = [each for each in shards if each.number % count == number - 1]
        self._done = job_folder.done() & {each.number for each in self._shards}
        self._resumed = len(self._done)
        instances = 1 if plan.interface is None else plan.interface.instances
        self._limit = ConcurrencyLimit(instances, plan.target.limit, options.concurrency)
        self._memory = ByteLimit(options.memory // 2)  # as much again for copies and outputs
        self._pipeline = RequestPipeline(
            plan.task, plan.target, self._limit, self._memory,
            options.retries, options.reconnect_s, self._write, self._fail,
        )  # fmt: skip
        self._allowed = allowed_errors(options.max_errors)
        self._instances = instances
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        self._open: set[ShardRun] = set()
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()  # all shards have parts, or the job cannot go on
        self._reading = min(os.cpu_count() or 1, _MAX_READERS)
        self._first_errors: list[str] = []
        self._samples: list[RateSample] = []
        by_number = {each.number: each for each in self._shards}
        self._progress = JobProgress(
            total_bytes=sum(each.nbytes for each in self._shards),
            done_bytes=sum(by_number[each].nbytes for each in self._done),
            total_shards=len(self._shards),
            done_shards=len(self._done),
        )

    def run(self) -> JobSummary:
        """Run until every shard has a part. Raises JobFailed and KeyboardInterrupt."""
        started, busy = time.monotonic(), self._plan.target.busy_ns()
        readers = [
            threading.Thread(target=self._read_shards, name=f"batch-reader-{number}", daemon=True)
            for number in range(self._reading)
        ]
        self._pipeline.start()
        for reader in readers:
            reader.start()
        renewed = started
        try:
            while not self._ended.wait(_POLL_S):
                self._update(started, busy)
                if time.monotonic() - renewed > self._options.lease_s / 3:
                    self._job_folder.renew()
                    renewed = time.monotonic()
        except BaseException as error:
            self._fail(error)
        finally:
            self._stop(readers)
        if self._failure is not None:
            raise self._failure
        self._update(started, busy)
        return self._summary()

    def _stop(self, readers: list[threading.Thread]) -> None:
        self._stopping.set()
        self._limit.stop()
        self._memory.stop()
        for reader in readers:
            reader.join()
        self._pipeline.close()
        for run in tuple(self._open):
            run.writer.discard()
        self._job_folder.release_all()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._failure is None and not isinstance(error, JobStopped):
                self._failure = error
        self._stopping.set()
        self._ended.set()
        self._limit.stop()
        self._memory.stop()

    # Readers

    def _read_shards(self) -> None:
        try:
            while (shard := self._next_shard()) is not None:
                self._read_shard(shard)
        except BaseException as error:
            self._fail(error)
        with self._lock:
            self._reading -= 1
            self._note_end()

    def _note_end(self) -> None:
        if not self._reading and not self._open:
            self._ended.set()

    def _next_shard(self) -> Shard | None:
        """Return a shard that no other process works on; wait while others have the rest."""
        while not self._stopping.is_set():
            held = False
            for shard in self._shards:
                with self._lock:
                    if shard.number in self._done or shard.number in self._taken:
                        continue
                    self._taken.add(shard.number)
                if self._job_folder.is_done(shard.number):
                    self._count_done(shard)
                elif self._job_folder.claim(shard.number):
                    if not self._job_folder.is_done(shard.number):
                        return shard
                    self._job_folder.release(shard.number)
                    self._count_done(shard)
                else:
                    held = True
                    with self._lock:
                        self._taken.discard(shard.number)
            if not held or self._stopping.wait(_RETRY_CLAIM_S):
                return None
        return None

    def _count_done(self, shard: Shard) -> None:
        with self._lock:
            self._done.add(shard.number)
            self._progress.done_shards += 1
            self._progress.done_bytes += shard.nbytes

    def _read_shard(self, shard: Shard) -> None:
        file = self._job_folder.scratch()
        run = ShardRun(shard, file, self._plan.writer(file, self._plan.task.schema))
        with self._lock:
            self._open.add(run)
        number = 0
        for rows in regroup(self._plan.rows(shard), self._plan.document.block_rows):
            self._pipeline.send(BlockState(run, number, self._prepare(rows)))
            number += 1
        self._pipeline.send(BlockState(run, number, None))

    def _prepare(self, rows: SourceRows) -> RowBlock:
        try:
            block = self._plan.task.prepare(rows)
        except NullValue as null:
            raise JobFailed(
                f"{rows.place(null.row)}: column '{null.column}' is null: give --nulls skip or "
                "--nulls default"
            ) from null
        self._check_rows(block)
        return block

    def _check_rows(self, block: RowBlock) -> None:
        """Raise JobFailed for the first row with an error if no error is allowed."""
        if self._options.on_error == "fail":
            for row, text in sorted(block.errors.items()):
                if row not in block.skipped:
                    raise JobFailed(f"{block.rows.place(row)}: {text}")

    # The writer's thread

    def _write(self, state: BlockState) -> None:
        if self._stopping.is_set():
            return
        try:
            self._write_ready(state)
        except OSError as error:
            raise JobFailed(f"the output cannot be written: {error}") from error

    def _write_ready(self, state: BlockState) -> None:
        run: ShardRun = state.shard
        run.waiting[state.number] = state
        while (ready := run.waiting.pop(run.next, None)) is not None:
            run.next += 1
            if ready.is_end:
                self._commit(run)
                return
            self._write_block(run, ready.block)

    def _write_block(self, run: ShardRun, block: RowBlock) -> None:
        table = self._plan.task.assemble(block)
        self._check_rows(block)
        run.writer.write(table)
        errors = len(block.errors) - len(block.skipped)
        run.rows += table.num_rows
        run.errors += errors
        progress = self._progress
        progress.rows += table.num_rows
        progress.read_bytes += block.source_bytes
        progress.skipped += len(block.skipped)
        if errors:
            progress.errors += errors
            for row, text in sorted(block.errors.items()):
                if len(self._first_errors) < _FIRST_ERRORS and row not in block.skipped:
                    self._first_errors.append(f"{block.rows.place(row)}: {text}")
            self._check_errors(progress.errors, progress.rows, final=False)

    def _check_errors(self, errors: int, rows: int, final: bool) -> None:
        limit, is_share = self._allowed
        if is_share and not final and rows < _LEAST_ROWS_FOR_SHARE:
            return
        if errors > (limit * rows if is_share else limit):
            examples = "".join(f"\n  {text}" for text in self._first_errors)
            raise JobFailed(
                f"{errors:,} of {rows:,} rows failed, more than --max-errors "
                f"{self._options.max_errors}:{examples}"
            )

    def _commit(self, run: ShardRun) -> None:
        run.writer.close()
        size, digest = run.file.stat().st_size, sha256_of(run.file)
        shard = run.shard
        record = PartRecord(shard.number, run.rows, run.errors, shard.nbytes, size, digest)
        self._job_folder.commit(record, run.file)
        with self._lock:
            self._open.discard(run)
        self._count_done(shard)
        with self._lock:
            self._note_end()

    # Progress

    def _update(self, started: float, busy: int) -> None:
        progress = self._progress
        progress.seconds = time.monotonic() - started
        progress.batches = self._pipeline.batches
        full = progress.batches * self._plan.task.batch_size
        progress.fill = self._pipeline.batched_rows / full if full else 0.0
        executed = (self._plan.target.busy_ns() - busy) / 1e9
        progress.busy = min(executed / (progress.seconds * self._instances), 1.0)
        progress.in_flight = self._limit.level
        sample = RateSample(progress.seconds, progress.rows, progress.in_flight)
        if len(self._samples) >= _MAX_SAMPLES:
            self._samples = self._samples[::2]
        self._samples.append(sample)
        self._view.update(progress)

    def _summary(self) -> JobSummary:
        own = {each.number for each in self._shards}
        records = self._job_folder.records()
        parts = [records[number] for number in sorted(own & set(records))]
        summary = JobSummary(
            self._plan.document.model,
            self._plan.document.version,
            self._options.output,
            self._options.command,
            parts,
            self._progress,
            self._resumed,
            self._samples,
            self._first_errors,
        )
        self._check_errors(summary.errors, summary.rows, final=True)
        return summary
