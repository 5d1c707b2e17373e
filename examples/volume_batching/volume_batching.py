"""A batch policy that limits the input bytes of a batch to MAX_BATCH_VOLUME_BYTES.

Preferred sizes, queue delay and all other rules of the dynamic batcher stay the same. A model
selects the policy with its parameters:

    parameters [
      { key: "batch_policy" value { string_value: "volume" } },
      { key: "MAX_BATCH_VOLUME_BYTES" value { string_value: "4096" } }
    ]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, hookimpl
from tritonpy.scheduling import Pending, Run, Wait
from tritonpy_batching_dynamic.preferred import PreferredPolicy

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

LIMIT = "MAX_BATCH_VOLUME_BYTES"


class VolumePolicy(PreferredPolicy):
    """Limits the bytes of a batch; a request above the limit runs alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        if LIMIT not in config.parameters:
            raise InvalidArgument(
                f"a model with the batch policy 'volume' needs the parameter {LIMIT}"
            )
        self._limit = int(config.parameters[LIMIT].string_value)

    def plan(self, pending: Pending, now_ns: int) -> Run | Wait:
        """Ignore requests beyond the limit, then decide as the dynamic batcher does."""
        left = self._limit
        for count, request in enumerate(pending.requests):
            left -= sum([tensor.nbytes for tensor in request.inputs.values()])
            if left < 0 and count > 0:
                return super().plan(pending.first(count), now_ns)
        return super().plan(pending, now_ns)


@hookimpl
def tritonpy_batch_policies() -> Mapping[str, type[VolumePolicy]]:
    """Register the batch policy "volume"."""
    return {"volume": VolumePolicy}
