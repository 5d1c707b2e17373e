from __future__ import annotations

from random import Random

import tritonpy_batching_sequence
from tritonpy import InferRequest, SequenceInfo
from tritonpy.scheduling import BatchPolicy
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_sequence.scheduler import SequenceScheduler
from tritonpy_testing import SchedulerContract
from tritonpy_testing.parse import model_config

CONFIG = """
    name: "m" max_batch_size: 4
    input { name: "IN" data_type: TYPE_FP32 dims: 4 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    sequence_batching { %s control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } } }
"""


class SequenceContract(SchedulerContract):
    """Every request starts or restarts a sequence."""

    plugin = tritonpy_batching_sequence
    plugin_class = SequenceScheduler
    name = "sequence"

    def make_request(self, harness: object, random: Random) -> InferRequest:
        request = super().make_request(harness, random)
        request.inputs = {
            name: type(tensor)(name, tensor.datatype, (1, *tensor.shape[1:]), tensor.data[:1])
            for name, tensor in request.inputs.items()
        }
        request.batch_size = 1
        request.sequence = SequenceInfo(
            random.randint(1, 30), start=True, end=random.random() < 0.5
        )
        return request

    def _policy(self, name: str) -> BatchPolicy:
        assert name == "preferred"
        return PreferredPolicy(model_config(self.config))


class TestDirect(SequenceContract):
    config = CONFIG % "direct {}"


class TestDirectWithDelay(SequenceContract):
    config = CONFIG % "direct { minimum_slot_utilization: 0.75 max_queue_delay_microseconds: 100 }"


class TestOldest(SequenceContract):
    config = CONFIG % "oldest { max_candidate_sequences: 6 }"


class TestOldestWithDelay(SequenceContract):
    config = CONFIG % "oldest { preferred_batch_size: [2, 4] max_queue_delay_microseconds: 100 }"
