"""One server of each kind for the whole run, if the real Triton is available."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import repository
from tests.conformance.compare import TRITON_RESTARTS
from tests.conformance.exchange_runner import ExchangeRunner
from tests.conformance.server import TRITONSERVER, running, triton_command, tritonpy_command
from tests.sampling import Sampling

SAMPLING = Sampling.of_environment("conformance")
SAMPLED = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the exchanges that are not in the sample."""
    exchanges = {
        item.nodeid: item for item in items if "topic" in getattr(item, "fixturenames", ())
    }
    left_out = [item for name, item in exchanges.items() if not SAMPLING.takes(name)]
    if exchanges:
        config.stash[SAMPLED] = SAMPLING.described(
            len(exchanges) - len(left_out), len(exchanges), "exchanges"
        )
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print which exchanges ran and how to repeat the selection."""
    if SAMPLED in config.stash:
        terminalreporter.write_line(config.stash[SAMPLED])


@pytest.fixture(scope="session")
def served_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that both servers read."""
    return repository.write(tmp_path_factory.mktemp("conformance") / "models")


def run_triton(models: Path, log: Path) -> ExchangeRunner:
    """Return the runner of exchanges on the real Triton; skip the test if there is none."""
    if TRITONSERVER not in os.environ:
        pytest.skip(
            f"needs the real tritonserver: set {TRITONSERVER} to its path (tests/conformance/oracle.sh builds it)"
        )
    return ExchangeRunner(
        lambda flags: running(triton_command(), models, log, *flags), TRITON_RESTARTS
    )


@pytest.fixture(scope="session")
def triton(
    served_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExchangeRunner]:
    """The runner of exchanges on the real Triton."""
    with run_triton(served_models, tmp_path_factory.mktemp("triton") / "log") as runner:
        yield runner


@pytest.fixture(scope="session")
def tritonpy(
    served_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExchangeRunner]:
    """The runner of exchanges on tritonpy."""
    log = tmp_path_factory.mktemp("tritonpy") / "log"
    with ExchangeRunner(
        lambda flags: running(tritonpy_command(), served_models, log, *flags)
    ) as runner:
        yield runner
