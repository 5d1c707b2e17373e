"""NVIDIA's own response cache, unmodified, runs in the real Triton and in tritonpy.

Both servers load the same `libtritoncache_local.so`. tritonpy runs without its own cache of that
name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import repository
from tests.conformance.conftest import run_triton
from tests.conformance.difference import differences
from tests.conformance.exchange import Exchange
from tests.conformance.exchange_runner import ExchangeRunner, run_on_both
from tests.conformance.intended_differences import judge, read
from tests.conformance.server import TRITONSERVER, running, tritonpy_command
from tests.conformance.topics import full_name
from tests.conformance.topics.response_cache import TOPIC

ATTEMPTS = 3
LISTED = read()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of all suites."""
    return repository.write(tmp_path_factory.mktemp("real_cache") / "models")


@pytest.fixture(scope="module")
def real(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExchangeRunner]:
    """The real Triton."""
    with run_triton(models, tmp_path_factory.mktemp("real") / "log") as runner:
        yield runner


@pytest.fixture(scope="module")
def hosting(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExchangeRunner]:
    """A tritonpy with the folder of the real Triton's caches, and without its own cache."""
    caches = Path(os.environ[TRITONSERVER]).resolve().parents[1] / "triton" / "caches"
    log = tmp_path_factory.mktemp("hosting") / "log"
    config = log.parent / "server.yaml"
    config.write_text("plugins: {disable: [cache-local]}\n", encoding="utf-8")
    command = [*tritonpy_command(), "--config", str(config), f"--cache-directory={caches}"]
    with ExchangeRunner(lambda flags: running(command, models, log, *flags)) as runner:
        yield runner


@pytest.mark.parametrize(
    "exchange", [pytest.param(each, id=full_name(TOPIC, each)) for each in TOPIC.exchanges]
)
def test_both_servers_use_it_identically(
    real: ExchangeRunner, hosting: ExchangeRunner, exchange: Exchange
) -> None:
    name = full_name(TOPIC, exchange)
    for _ in range(ATTEMPTS):
        found = list(differences(*run_on_both(real, hosting, TOPIC, exchange)))
        verdict = judge(name, found, LISTED, sample=False)
        if not verdict.unlisted:
            return
        print(f"{name}: {verdict}")
    pytest.fail(f"\n{verdict}")
