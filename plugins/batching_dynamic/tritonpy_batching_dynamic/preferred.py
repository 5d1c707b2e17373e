"""The default batch policy: Triton's preferred batch sizes and queue delay."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from tritonpy.scheduling import BatchPolicy, Pending, Run, Wait

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@mypyc_attr(allow_interpreted_subclasses=True)
class PreferredPolicy(BatchPolicy):
    """Runs a batch of a preferred size immediately. Others wait up to the maximum queue delay.

    Everything that fits runs when the delay of the oldest request ends, or when no delay is
    configured and no preferred size can be formed. A batch that can no longer reach a preferred
    size runs without waiting. Without preferred sizes, the model's maximum batch size is the
    preferred one. For sequence models, the sizes and the delay are those of the strategy `oldest`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        sequences = config.HasField("sequence_batching")
        batching = config.sequence_batching.oldest if sequences else config.dynamic_batching
        self._preferred = sorted(batching.preferred_batch_size) or [max(1, config.max_batch_size)]
        self._largest = self._preferred[-1]
        self._delay_ns = batching.max_queue_delay_microseconds * 1_000

    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Decide by the sizes of the pending requests and the age of the oldest."""
        count = len(pending.sizes)
        delay_ns = self._delay_ns
        if delay_ns and now_ns >= pending.oldest_ns + delay_ns:
            return Run(count)
        if pending.rows == count:  # with one row each, every number of rows is possible
            fitting = bisect_right(self._preferred, count)
            best = self._preferred[fitting - 1] if fitting else 0
        else:
            best = self._best(pending.sizes)
        if best:
            return Run(best)
        if not delay_ns or pending.closed or pending.rows >= self._largest:
            return Run(count)
        return Wait(pending.oldest_ns + delay_ns)

    def _best(self, sizes: Sequence[int]) -> int:
        best = 0
        for count, rows in enumerate(accumulate(sizes), start=1):
            if rows in self._preferred:
                best = count
            elif rows > self._largest and count > 1:
                # The next request would exceed the largest preferred size.
                return best or count - 1
        return best
