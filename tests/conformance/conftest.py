"""One server of each kind for the whole run, where the real Triton is at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import repository
from tests.conformance.compare import TRITON_RESTARTS
from tests.conformance.interviewer import Interviewer
from tests.conformance.server import TRITONSERVER, running, triton_command, tritonpy_command


@pytest.fixture(scope="session")
def served_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that both servers read."""
    return repository.write(tmp_path_factory.mktemp("conformance") / "models")


@pytest.fixture(scope="session")
def triton(served_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interviewer]:
    """Asks the real Triton."""
    if TRITONSERVER not in os.environ:
        pytest.skip(
            f"needs the real tritonserver: set {TRITONSERVER} to its path (tests/conformance/oracle.sh builds it)"
        )
    log = tmp_path_factory.mktemp("triton") / "log"
    with Interviewer(
        lambda flags: running(triton_command(), served_models, log, *flags), TRITON_RESTARTS
    ) as interviewer:
        yield interviewer


@pytest.fixture(scope="session")
def tritonpy(served_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interviewer]:
    """Asks tritonpy."""
    log = tmp_path_factory.mktemp("tritonpy") / "log"
    with Interviewer(lambda flags: running(tritonpy_command(), served_models, log, *flags)) as interviewer:
        yield interviewer
