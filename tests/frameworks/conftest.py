"""One server with every backend, and real models in every format."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.conftest import ROOT, Serve, Served
from tests.frameworks.asking import PROTOCOLS, Asker, asker

Array = npt.NDArray[Any]
BATCH = 64
FLAGS = ("--model-control-mode=explicit", f"--backend-config=default-max-batch-size={BATCH}")
# Frameworks that meet in one process may differ in what they load; they write their formats in separate ones.
MADE = (
    ("examples.formats", "onnx", "torchscript", "exported", "openvino"),
    ("examples.formats", "savedmodel", "graphdef", "keras"),
    ("examples.sentences",),
)
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that the scripts of `examples/` make; nobody changes it."""
    folder = tmp_path_factory.mktemp("made") / "models"
    for module, *formats in MADE:
        done = subprocess.run(
            [sys.executable, "-m", module, str(folder), *formats],
            cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def served(serve: Serve, made: Path) -> Iterator[Served]:
    """A server with all of `made`; that each is loaded is a test of its own."""
    with serve(f"--model-repository={made}", *FLAGS) as running:
        for model in sorted(path.name for path in made.iterdir()):
            running.ask(f"/v2/repository/models/{model}/load", "{}")
        yield running


def load(served: Served, model: str) -> None:
    """Load a model; it must come up."""
    answer = served.ask(f"/v2/repository/models/{model}/load", "{}")
    assert answer.status == 200, answer.body.decode()


@pytest.fixture(params=PROTOCOLS)
def client(served: Served, request: pytest.FixtureRequest) -> Iterator[Asker]:
    """A client by each protocol."""
    with asker(served, request.param) as made:
        yield made


@pytest.fixture(scope="session")
def images() -> Array:
    """All 1,797 digits, float32 [n, 64]."""
    from sklearn.datasets import load_digits

    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="session")
def weights(made: Path) -> Mapping[str, Array]:
    """Of the digits' network."""
    with np.load(made.parent / "digits.npz") as stored:
        return dict(stored)
