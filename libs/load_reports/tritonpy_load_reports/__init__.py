"""ORCA load reports: how busy a server is, as responses and streams tell load balancers.

Start at `LoadReporter`. The package may import public names of the core.
"""

from __future__ import annotations

from tritonpy_load_reports.machine import MachineLoad
from tritonpy_load_reports.report import LoadReport, LoadReportOptions
from tritonpy_load_reports.reporter import LoadReporter

__all__ = ["LoadReport", "LoadReportOptions", "LoadReporter", "MachineLoad"]
