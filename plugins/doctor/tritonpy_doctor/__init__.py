"""The commands `tritonpy doctor` and `tritonpy completion`, and the checks of doctor.

Plugin discovery imports this module only. Start at `examination`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl

_CHECKS = {
    "installation": {
        "python": "PythonVersion",
        "packages": "PackageVersions",
        "plugins": "PluginImports",
        "backends": "MissingBackends",
        "start": "StartTime",
    },
    "machine": {
        "processor": "Processor",
        "memory": "MainMemory",
        "shared-memory": "SharedMemoryFolder",
        "limits": "ProcessLimits",
        "disk": "DiskSpace",
        "kernel": "KernelSettings",
        "clock": "SystemClock",
        "gpu": "Gpus",
    },
    "server": {
        "configuration": "Configuration",
        "ports": "Ports",
        "repositories": "Repositories",
        "tls": "Certificates",
        "services": "Services",
        "user": "ServerUser",
    },
}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the commands."""
    return {
        "completion": "tritonpy_doctor.completion:CompletionCommand",
        "doctor": "tritonpy_doctor.command:DoctorCommand",
    }


@hookimpl
def tritonpy_doctor_checks() -> Mapping[str, str]:
    """Register the checks by name."""
    return {
        name: f"tritonpy_doctor.checks.{module}:{kind}"
        for module, checks in _CHECKS.items()
        for name, kind in checks.items()
    }
