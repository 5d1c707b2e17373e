"""Bad models beside good ones: each says what is wrong with it, and nobody else notices."""

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

from tests.conftest import Serve, Served
from tests.frameworks.asking import asker
from tests.frameworks.bad_models import bare_pickle, marker
from tests.frameworks.conftest import FLAGS, load
from tests.frameworks.damages import DAMAGES
from tests.frameworks.digits_reference import scores
from tests.frameworks.test_digits import TOLERANCE, TOLERANCES

Array = npt.NDArray[Any]
# the good models, and how far their answers may be from numpy's
GOOD = {f"digits_{form}": TOLERANCES.get(form, TOLERANCE) for form in ("onnx", "exported", "savedmodel", "openvino")}


@pytest.fixture(scope="module")
def repository(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good models, and every bad one."""
    folder = tmp_path_factory.mktemp("bad")
    for name in GOOD:
        shutil.copytree(made / name, folder / name)
    for name, damage in DAMAGES.items():
        shutil.copytree(made / damage.good, folder / name)
        damage.act(folder / name / "1")
        if damage.config:
            (folder / name / "config.pbtxt").write_text(damage.config)
    return folder


@pytest.fixture(scope="module")
def beside(serve: Serve, repository: Path) -> Iterator[Served]:
    """A server that serves the good ones."""
    with serve(f"--model-repository={repository}", *FLAGS) as served:
        for name in GOOD:
            load(served, name)
        yield served


@pytest.fixture(scope="module")
def traffic(beside: Served, images: Array, weights: Mapping[str, Array]) -> Iterator[list[str]]:
    """The good models are asked all the while; what went wrong with them."""
    right, wrong, stop = scores(images[:5], weights), [], threading.Event()

    def ask() -> None:
        with asker(beside, "http") as client:
            while not stop.is_set():
                for model, distance in GOOD.items():
                    try:
                        np.testing.assert_allclose(client.ask_one(model, images[:5]), right, atol=distance)
                    except Exception as error:
                        wrong.append(f"{model}: {error}")

    thread = threading.Thread(target=ask)
    thread.start()
    yield wrong
    stop.set()
    thread.join()


@pytest.mark.parametrize("name", DAMAGES)
def test_a_bad_model_is_refused_with_a_clear_text_and_the_good_ones_serve_on(
    beside: Served, traffic: list[str], name: str
) -> None:
    answer = beside.ask(f"/v2/repository/models/{name}/load", "{}")
    beginning, _, text = answer.json()["error"].partition(" is at UNAVAILABLE state: ")
    assert answer.status == 400
    assert beginning == f"load failed for model '{name}': version 1"
    for pattern in DAMAGES[name].says:
        assert re.search(pattern, text), text
    assert "Traceback" not in text
    assert beside.ask(f"/v2/models/{name}/ready").status == 404
    [entry] = [entry for entry in beside.ask("/v2/repository/index", "{}").json() if entry["name"] == name]
    assert entry["state"] == "UNAVAILABLE"
    for model in GOOD:
        assert beside.ask(f"/v2/models/{model}/ready").status == 200
    assert traffic == []


@pytest.mark.parametrize("name", [name for name in DAMAGES if name.startswith(("pickle", "lambda"))])
def test_the_code_in_a_model_does_not_run(beside: Served, repository: Path, name: str) -> None:
    assert beside.ask(f"/v2/repository/models/{name}/load", "{}").status == 400
    assert not marker(repository / name / "1").exists()


def test_the_code_in_those_pickles_would_run(tmp_path: Path) -> None:
    bare_pickle("model.pt")(tmp_path)
    pickle.loads((tmp_path / "model.pt").read_bytes())  # noqa: S301
    assert marker(tmp_path).is_dir()
