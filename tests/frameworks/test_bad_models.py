"""Bad models next to good ones: each fails with a clear error, and the good ones are not affected."""

from __future__ import annotations

import pickle
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.conftest import Serve, ServerProcess
from tests.frameworks.bad_model_cases import BAD_MODELS
from tests.frameworks.bad_models import bare_pickle, marker
from tests.frameworks.clients import inference_client
from tests.frameworks.conftest import FLAGS, load
from tests.frameworks.digits_reference import scores
from tests.frameworks.test_digits import TOLERANCE, TOLERANCES

Array = npt.NDArray[Any]
# the good models, and the tolerance of their outputs against numpy
GOOD = {
    f"digits_{form}": TOLERANCES.get(form, TOLERANCE)
    for form in ("onnx", "exported", "savedmodel", "openvino")
}


@pytest.fixture(scope="module")
def repository(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The good models and every bad one."""
    folder = tmp_path_factory.mktemp("bad")
    for name in GOOD:
        shutil.copytree(made / name, folder / name)
    for name, damage in BAD_MODELS.items():
        shutil.copytree(made / damage.good, folder / name)
        damage.act(folder / name / "1")
        if damage.config:
            (folder / name / "config.pbtxt").write_text(damage.config)
    return folder


@pytest.fixture(scope="module")
def good_models_server(serve: Serve, repository: Path) -> Iterator[ServerProcess]:
    """A server that serves the good models."""
    with serve(f"--model-repository={repository}", *FLAGS) as served:
        for name in GOOD:
            load(served, name)
        yield served


@pytest.fixture(scope="module")
def traffic(
    good_models_server: ServerProcess, images: Array, weights: Mapping[str, Array]
) -> Iterator[list[str]]:
    """Continuous requests to the good models; yields the list of failures."""
    right, wrong, stop = scores(images[:5], weights), [], threading.Event()

    def send_requests() -> None:
        with inference_client(good_models_server, "http") as client:
            while not stop.is_set():
                for model, distance in GOOD.items():
                    try:
                        np.testing.assert_allclose(
                            client.infer_single(model, images[:5]), right, atol=distance
                        )
                    except Exception as error:
                        wrong.append(f"{model}: {error}")

    thread = threading.Thread(target=send_requests)
    thread.start()
    yield wrong
    stop.set()
    thread.join()


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_bad_model_fails_with_a_clear_error_and_good_models_keep_serving(
    good_models_server: ServerProcess, traffic: list[str], name: str
) -> None:
    response = good_models_server.request(f"/v2/repository/models/{name}/load", "{}")
    beginning, _, text = response.json()["error"].partition(" is at UNAVAILABLE state: ")
    assert response.status == 400
    assert beginning == f"load failed for model '{name}': version 1"
    for pattern in BAD_MODELS[name].says:
        assert re.search(pattern, text), text
    assert "Traceback" not in text
    assert good_models_server.request(f"/v2/models/{name}/ready").status == 404
    [entry] = [
        entry
        for entry in good_models_server.request("/v2/repository/index", "{}").json()
        if entry["name"] == name
    ]
    assert entry["state"] == "UNAVAILABLE"
    for model in GOOD:
        assert good_models_server.request(f"/v2/models/{model}/ready").status == 200
    assert traffic == []


@pytest.mark.parametrize(
    "name", [name for name in BAD_MODELS if name.startswith(("pickle", "lambda"))]
)
def test_the_code_in_a_model_does_not_run(
    good_models_server: ServerProcess, repository: Path, name: str
) -> None:
    assert good_models_server.request(f"/v2/repository/models/{name}/load", "{}").status == 400
    assert not marker(repository / name / "1").exists()


def test_the_code_in_those_pickles_would_run(tmp_path: Path) -> None:
    bare_pickle("model.pt")(tmp_path)
    pickle.loads((tmp_path / "model.pt").read_bytes())  # noqa: S301
    assert marker(tmp_path).is_dir()
