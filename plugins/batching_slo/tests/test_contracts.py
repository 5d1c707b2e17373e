from __future__ import annotations

import tritonpy_batching_slo
from tritonpy_batching_slo.policy import SloPolicy
from tritonpy_testing import BatchPolicyContract


class TestSloPolicy(BatchPolicyContract):
    plugin = tritonpy_batching_slo
    plugin_class = SloPolicy
    name = "slo"
    config = 'max_batch_size: 8 dynamic_batching { } parameters { key: "slo_ms" value { string_value: "5" } }'
