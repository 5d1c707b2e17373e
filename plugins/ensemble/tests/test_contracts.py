from __future__ import annotations

import tritonpy_ensemble
from tritonpy_ensemble.scheduler import EnsembleScheduler
from tritonpy_testing import SchedulerContract


class TestEnsembleScheduler(SchedulerContract):
    plugin = tritonpy_ensemble
    plugin_class = EnsembleScheduler
    name = "ensemble"
    config = """
        name: "m" platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step { model_name: "identity" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "MID" } }
          step { model_name: "identity" model_version: -1 input_map { key: "IN" value: "MID" } output_map { key: "OUT" value: "OUT" } }
          max_inflight_requests: 2
        }
    """
