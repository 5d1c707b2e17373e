"""Inline execution on the event loop, for batches that take less time than a thread switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import ModelContext
from tritonpy_config.parameters import parameter_bool
from tritonpy_ipc.blocks import BlockView
from tritonpy_types import Batch

# Handing over to a thread and back takes about 70 us on an idle machine. The event loop spends more
# than that on the requests of one iteration.
FAST_NS = 200_000
# Limit for batches of several requests: a base, the interpreter's work for each request, and a
# maximum. While a thread executes such a batch, the event loop could read other requests.
BATCH_NS, PER_REQUEST_NS, MAX_NS = 100_000, 12_000, 600_000
SLOW_NS = 1_000_000  # of processor time: due to the execution itself, not to other threads
# An execution that blocks the event loop for this long disables the policy.
BLOCKING_NS = 10_000_000
STALLED_NS = 1_000_000_000  # the same by the clock, even if other processes had the processor
REQUIRED_FAST = 16  # consecutive fast executions of a size before the event loop runs one
_WEIGHT = 0.1  # of the newest execution in a moving average
# An inline execution counts as at most this many times the limit: it may have lost the processor.
_OUTLIER_FACTOR = 5
_DECAY = 0.995  # factor by which each execution on the thread reduces the average of inline ones
# After this many times the required number of fast inline executions, that number is halved.
_RECOVERY_FACTOR = 64
_MAX_REQUIRED = 1 << 20


PARAMETER = "inline"


def may_run_inline(model: ModelContext, backend: type[Backend]) -> bool:
    """Return whether instances of `model` may run on the event loop.

    The backend must be callable from any thread, its executions must end by themselves, and the
    parameter `inline` must not forbid it. Raises `InvalidArgument` if the parameter is not a
    boolean.
    """
    requested = PARAMETER not in model.parameters or parameter_bool(
        PARAMETER, model.parameters[PARAMETER]
    )
    config = model.config
    waits = config.model_transaction_policy.decoupled or config.HasField("sequence_batching")
    return requested and backend.runs_on_any_thread and not waits


def size_class(batch: Batch) -> int:
    """Return the size class of `batch`.

    It combines two bit lengths: that of the input bytes in the lowest 8 bits, and that of the
    number of requests above them.
    """
    nbytes = 0
    for request in batch.requests:
        inputs: Any = request.inputs
        if isinstance(inputs, BlockView):
            nbytes += inputs.block.signature.nbytes
        else:
            for tensor in inputs.values():
                data = tensor.data
                nbytes += data.nbytes if type(data) is np.ndarray else tensor.nbytes
    return len(batch.requests).bit_length() << 8 | nbytes.bit_length()


def limit_of(size: int) -> int:
    """Return the mean time in ns up to which a batch of a size class may run on the event loop."""
    fewest = 1 << (size >> 8) - 1
    return FAST_NS if fewest == 1 else min(BATCH_NS + PER_REQUEST_NS * fewest, MAX_NS)


@dataclass(slots=True)
class _Record:
    """Consecutive fast executions of one size class, and their mean times.

    `thread_ns` is the mean processor time on a thread, where an execution may wait for the
    interpreter. An execution of `SLOW_NS` or more counts with its clock time. `loop_ns` is the mean
    clock time on the event loop.
    """

    limit_ns: int
    count: int = 0
    thread_ns: float = 0.0
    loop_ns: float = 0.0

    def add_on_thread(self, busy_ns: int, ns: int) -> None:
        self.count += 1
        cost_ns = busy_ns if ns < SLOW_NS else min(ns, BLOCKING_NS)
        self.thread_ns += (cost_ns - self.thread_ns) * max(_WEIGHT, 1 / self.count)
        self.loop_ns *= _DECAY

    def add_on_loop(self, ns: int) -> None:
        self.count += 1
        self.loop_ns += (min(ns, _OUTLIER_FACTOR * self.limit_ns) - self.loop_ns) * _WEIGHT


class InlinePolicy:
    """Decides from past executions which batches run on the event loop.

    Only one thread at a time may use it. A batch runs inline if executions of its size are fast on
    average and the last `REQUIRED_FAST` of them were not slow. Each slow inline execution doubles
    that number. One that takes `BLOCKING_NS` of processor time or `STALLED_NS` by the clock
    disables inline execution for good.
    """

    def __init__(self) -> None:
        self.has_candidates = False  # some size class qualifies, perhaps that of the next batch
        self._disabled = False
        self._records: dict[int, _Record] = {}  # by size class
        self._required = REQUIRED_FAST
        self._fast_count = 0  # inline executions since the last slow one

    def allows(self, size: int) -> bool:
        """Return whether a batch of the size class `size` may run inline."""
        record = self._records.get(size)
        return self.has_candidates and record is not None and self._is_qualified(record)

    def record(self, size: int, busy_ns: int, ns: int, on_loop: bool) -> None:
        """Record processor time and clock time of an execution of the size class `size`."""
        if self._disabled:
            return
        if on_loop and (busy_ns > SLOW_NS or ns > BLOCKING_NS):
            self._penalize(busy_ns, ns)
            return
        if busy_ns > SLOW_NS:
            self._records.pop(size, None)
            self.has_candidates = any(map(self._is_qualified, self._records.values()))
            return
        record = self._records.get(size)
        if record is None:
            record = self._records[size] = _Record(limit_of(size))
        if not on_loop:
            record.add_on_thread(busy_ns, ns)
            self.has_candidates = self.has_candidates or self._is_qualified(record)
        else:
            record.add_on_loop(ns)
            self._fast_count += 1
            if self._fast_count >= _RECOVERY_FACTOR * self._required:
                self._fast_count, self._required = 0, max(self._required // 2, REQUIRED_FAST)

    def disable(self) -> None:
        """Allow no more inline executions."""
        self.has_candidates, self._disabled = False, True

    def _is_qualified(self, record: _Record) -> bool:
        limit_ns = record.limit_ns
        return (
            record.count >= self._required
            and record.thread_ns <= limit_ns
            and record.loop_ns <= 2 * limit_ns
        )

    def _penalize(self, busy_ns: int, ns: int) -> None:
        self._records.clear()
        self.has_candidates = False
        self._fast_count, self._required = 0, min(2 * self._required, _MAX_REQUIRED)
        if busy_ns > BLOCKING_NS or ns > STALLED_NS:
            self.disable()
