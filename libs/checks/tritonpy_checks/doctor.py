"""Checks of a machine and an installation."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tritonpy_config.server import ServerConfig


class CheckStatus(enum.Enum):
    """The outcome of a check."""

    OK = "ok"
    WARN = "warn"
    """The server works, but something is slower, smaller or less safe than it could be."""
    FAIL = "fail"
    """Something that the server needs does not work."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report: what was found, and for a problem the command or step that helps."""

    status: CheckStatus
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """What checks may look at besides the machine: the configuration of the server."""

    config: ServerConfig
    server_file: Path | None = None
    """The server.yaml that was read; None for the default configuration."""
    network: bool = False
    """Checks may call other machines, such as a cloud repository or a Redis server."""


class DoctorCheck(ABC):
    """A check that reads only and ends within seconds.

    A plugin registers the class by a name under the hook `tritonpy_doctor_checks`. A complete
    check:

        class CpuCount(DoctorCheck):
            title = "Processor cores"

            def run(self, context):
                yield CheckResult(CheckStatus.OK, f"{os.cpu_count()} cores")

    An exception, or no result within the time limit, is a failed check; the others still run.
    """

    title: ClassVar[str]
    """The subject, as a heading of the report."""

    @abstractmethod
    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield what was found. Secrets are never part of a text."""
