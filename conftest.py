"""Rules of every test run: one hypothesis profile, a printed seed, isolated logging, checked skips.

A test may skip only with a reason that begins with "needs " (a GPU or a tool that is missing). Any
other skip or expected failure fails the run.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tritonpy.logs import LOGGER

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # tests import ONNX Runtime themselves, too
ALLOWED = "needs "
SEED_BITS = 32
_LOGGERS = (
    "",
    LOGGER,
    "tritonpy.model",
    "tritonpy.repository",
)  # loggers whose levels commands set

settings.register_profile("tritonpy", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("tritonpy")


@pytest.hookimpl(tryfirst=True)  # runs before hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of the run if the command line names none."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(SEED_BITS))
    config.pluginmanager.register(_SkipRule(), "skip rule")


@pytest.fixture(autouse=True)
def logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the logging configuration of this process after each test."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    root = logging.getLogger()
    handlers = list(root.handlers)
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
        handler.close()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line that shows how to repeat the examples."""
    return _repeat(config)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the seed next to the failures: a quiet run has no header."""
    if exitstatus:
        terminalreporter.line(_repeat(config))


def _repeat(config: pytest.Config) -> str:
    return f"repeat with: --hypothesis-seed={config.option.hypothesis_seed}"


class _SkipRule:
    """Records skips and expected failures without an accepted reason."""

    def __init__(self) -> None:
        self._offenders: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a skipped module."""
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test that is skipped or expected to fail."""
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if hasattr(report, "wasxfail"):
            self._offenders.append(
                f"{report.nodeid}: xfail: {report.wasxfail or 'no reason given'}"
            )
        elif report.skipped and not (reason := _reason(report)).startswith(ALLOWED):
            self._offenders.append(f"{report.nodeid}: skip: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that would otherwise pass."""
        if self._offenders and session.exitstatus in {
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the recorded tests at the end."""
        if not self._offenders:
            return
        terminalreporter.section("left out without leave", red=True, bold=True)
        for offender in self._offenders:
            terminalreporter.line(offender)
        terminalreporter.line(
            "A test may skip only for a GPU or a tool that is not there, "
            f'with a reason that begins with "{ALLOWED}"; '
            "xfail is not allowed."
        )


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    place = report.longrepr
    return place[2].removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)
