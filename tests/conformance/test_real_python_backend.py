"""NVIDIA's own Python backend, unmodified, runs in the real Triton and in tritonpy.

Both servers load the same `libtriton_python.so` and start its own stub processes. Each run takes
some topics, by the seed that also selects exchanges.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conformance import repository
from tests.conformance.conftest import SAMPLING, run_triton
from tests.conformance.difference import differences
from tests.conformance.exchange import Exchange, Topic
from tests.conformance.exchange_runner import ExchangeRunner, run_on_both
from tests.conformance.intended_differences import judge, read
from tests.conformance.server import TRITONSERVER, running, tritonpy_command
from tests.conformance.topics import (
    bls,
    cancellation,
    decoupled,
    execute_errors,
    full_name,
    implicit_state,
    iterative,
    metrics_families,
    requests,
    sequences,
    tensors,
    uneven_batches,
)

TOPICS = [
    module.TOPIC
    for module in (
        tensors, decoupled, bls, execute_errors, requests, cancellation, metrics_families,
        sequences, iterative, implicit_state, uneven_batches,
    )
]  # fmt: skip
LISTED = [*read(), *read(Path(__file__).resolve().parent / "real_backend_differences.toml")]
ATTEMPTS = 3
MOST_EXCHANGES = 40  # of a topic in a sample
LIBRARY = "libtriton_python.so"


def _selected() -> list[tuple[Topic, Exchange]]:
    """Return everything, or some exchanges of two topics."""
    if SAMPLING.share >= 1:
        return [(topic, exchange) for topic in TOPICS for exchange in topic.exchanges]
    random = Random(SAMPLING.seed)
    return [
        (topic, exchange)
        for topic in random.sample(TOPICS, 2)
        for exchange in sorted(
            random.sample(topic.exchanges, min(MOST_EXCHANGES, len(topic.exchanges))),
            key=topic.exchanges.index,
        )
    ]


def _cases() -> Iterator[Any]:
    for case in _selected():
        yield pytest.param(*case, id=full_name(*case))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of all suites, whose Python models name NVIDIA's library."""
    folder = repository.write(tmp_path_factory.mktemp("real_backend") / "models")
    for config in folder.glob("*/config.pbtxt"):
        text = config.read_text(encoding="utf-8")
        if 'backend: "python"' in text:
            config.write_text(f'{text}\nruntime: "{LIBRARY}"\n', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def real(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExchangeRunner]:
    """The real Triton."""
    with run_triton(models, tmp_path_factory.mktemp("real") / "log") as runner:
        yield runner


@pytest.fixture(scope="module")
def hosting(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExchangeRunner]:
    """A tritonpy with the folder of the real Triton's backends, and what their processes need."""
    root = Path(os.environ[TRITONSERVER]).resolve().parents[1]
    python = root / "venv" / "bin" / "python"
    script = "import sysconfig; print(*sysconfig.get_paths()['purelib'].split(), sysconfig.get_config_var('LIBDIR'))"
    site, libraries = subprocess.check_output([python, "-c", script], text=True).split()
    environment = {
        "LD_LIBRARY_PATH": f"{site}/nvidia_pytriton.libs:{libraries}",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": site,
    }
    log = tmp_path_factory.mktemp("hosting") / "log"
    config = log.parent / "server.yaml"
    lines = [f"    {name}: '{value}'" for name, value in environment.items()]
    config.write_text("\n".join(["backend_defaults:", "  environment:", *lines]))
    command = [
        *tritonpy_command(), "--config", str(config),
        f"--backend-directory={root / 'triton' / 'backends'}",
    ]  # fmt: skip
    with ExchangeRunner(lambda flags: running(command, models, log, *flags)) as runner:
        yield runner


@pytest.mark.parametrize(("case_topic", "exchange"), list(_cases()))
def test_both_servers_host_it_identically(
    real: ExchangeRunner, hosting: ExchangeRunner, case_topic: Topic, exchange: Exchange
) -> None:
    name = full_name(case_topic, exchange)
    for _ in range(ATTEMPTS):
        found = list(differences(*run_on_both(real, hosting, case_topic, exchange)))
        verdict = judge(name, found, LISTED, sample=SAMPLING.share < 1)
        if not verdict.unlisted:
            return
        print(f"{name}: {verdict}")
    pytest.fail(f"\n{verdict}")
