"""The registration of the plugin and the contract of its factory."""

from __future__ import annotations

import tritonpy_workers
from tritonpy_testing import RunnerFactoryContract
from tritonpy_workers.runner import WorkerRunnerFactory


class TestWorkers(RunnerFactoryContract):
    plugin_class = WorkerRunnerFactory
    plugin = tritonpy_workers
    name = "process"
    installed = True
