from __future__ import annotations

import tritonpy_batching_dynamic
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_dynamic.scheduler import DynamicScheduler
from tritonpy_testing import BatchPolicyContract, SchedulerContract

CONFIG = """
    name: "m" max_batch_size: 8
    input { name: "IN" data_type: TYPE_FP32 dims: 4 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    dynamic_batching { preferred_batch_size: [4, 8] max_queue_delay_microseconds: 100 }
"""


class TestDynamicScheduler(SchedulerContract):
    plugin = tritonpy_batching_dynamic
    plugin_class = DynamicScheduler
    name = "dynamic"
    config = CONFIG


class TestPreferredPolicy(BatchPolicyContract):
    plugin = tritonpy_batching_dynamic
    plugin_class = PreferredPolicy
    name = "preferred"
    config = CONFIG
