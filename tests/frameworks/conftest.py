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

from tests.conftest import ROOT, Serve, ServerProcess
from tests.frameworks.clients import PROTOCOLS, InferenceClient, inference_client

Array = npt.NDArray[Any]
BATCH = 64
FLAGS = ("--model-control-mode=explicit", f"--backend-config=default-max-batch-size={BATCH}")
# The versions of libraries that frameworks load may conflict, so separate processes write the
# formats.
MADE = (
    ("examples.formats", "onnx", "torchscript", "exported", "openvino"),
    ("examples.formats", "savedmodel", "graphdef", "keras"),
    ("examples.sentences",),
)
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that the scripts of `examples/` write; tests do not change it."""
    folder = tmp_path_factory.mktemp("made") / "models"
    for module, *formats in MADE:
        done = subprocess.run(
            [sys.executable, "-m", module, str(folder), *formats],
            cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def served(serve: Serve, made: Path) -> Iterator[ServerProcess]:
    """A server with all of `made`; a separate test checks that each is loaded."""
    with serve(f"--model-repository={made}", *FLAGS) as running:
        for model in sorted(path.name for path in made.iterdir()):
            running.request(f"/v2/repository/models/{model}/load", "{}")
        yield running


def load(served: ServerProcess, model: str) -> None:
    """Load a model; it must succeed."""
    response = served.request(f"/v2/repository/models/{model}/load", "{}")
    assert response.status == 200, response.body.decode()


@pytest.fixture(params=PROTOCOLS)
def client(served: ServerProcess, request: pytest.FixtureRequest) -> Iterator[InferenceClient]:
    """A client for each protocol."""
    with inference_client(served, request.param) as made:
        yield made


@pytest.fixture(scope="session")
def images() -> Array:
    """All 1,797 digits, float32 [n, 64]."""
    from sklearn.datasets import load_digits

    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="session")
def weights(made: Path) -> Mapping[str, Array]:
    """The weights of the digits network."""
    with np.load(made.parent / "digits.npz") as stored:
        return dict(stored)
