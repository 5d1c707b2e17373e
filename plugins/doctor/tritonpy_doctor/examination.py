"""Runs all checks at the same time, each with a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tritonpy.plugins import PluginManager
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext

LIMIT_S = 4.5


@dataclass(frozen=True, slots=True)
class Section:
    """The results of one check, by its name and its title."""

    name: str
    title: str
    results: tuple[CheckResult, ...]

    @property
    def status(self) -> CheckStatus:
        """The worst status of the results."""
        order = (CheckStatus.FAIL, CheckStatus.WARN)
        statuses = {result.status for result in self.results}
        return next((each for each in order if each in statuses), CheckStatus.OK)


def load_checks(manager: PluginManager) -> dict[str, DoctorCheck]:
    """Return the checks of all plugins by name. Raises PluginError for one that is broken."""
    table = manager.table("tritonpy_doctor_checks")
    return {name: entry.load()() for name, entry in table.items()}


def examine(
    checks: dict[str, DoctorCheck], context: DoctorContext, limit_s: float = LIMIT_S
) -> list[Section]:
    """Return the results of all checks in their order, after at most `limit_s` seconds.

    A check that raises or does not end in time has failed. Threads of such checks are daemons.
    """
    runs = [_Run(name, check, context) for name, check in checks.items()]
    for run in runs:
        run.start()
    deadline = time.monotonic() + limit_s
    for run in runs:
        run.join(max(0.0, deadline - time.monotonic()))
    return [run.section(limit_s) for run in runs]


class _Run(threading.Thread):
    """One check on a thread of its own."""

    def __init__(self, name: str, check: DoctorCheck, context: DoctorContext) -> None:
        super().__init__(name=f"doctor {name}", daemon=True)
        self._key = name
        self._check = check
        self._context = context
        self._found: list[CheckResult] = []

    def run(self) -> None:
        try:
            for result in self._check.run(self._context):
                self._found.append(result)
        except Exception as error:
            text = f"the check itself failed: {type(error).__name__}: {error}"
            fix = "Please report it with the output of --bundle."
            self._found.append(CheckResult(CheckStatus.FAIL, text, fix))

    def section(self, limit_s: float) -> Section:
        """Return the results so far, with a failure if the check still runs."""
        results: Sequence[CheckResult] = tuple(self._found)
        if self.is_alive():
            text = f"no result within {limit_s:g} s"
            fix = "The machine is overloaded, or a file system or service does not answer."
            results = (*results, CheckResult(CheckStatus.FAIL, text, fix))
        return Section(self._key, self._check.title, tuple(results))
