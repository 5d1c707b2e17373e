"""The registration of the plugin and the contract of its host."""

from __future__ import annotations

import tritonpy_frontend_processes
from tritonpy_frontend_processes.remote_frontend import FrontendProcesses
from tritonpy_testing import FrontendHostContract


class TestFrontendProcesses(FrontendHostContract):
    plugin_class = FrontendProcesses
    plugin = tritonpy_frontend_processes
    name = "processes"
    installed = True
