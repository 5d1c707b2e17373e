from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.errors import InvalidArgument
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.python_based import BackendFolders
from tritonpy.repository.runtime import runtime_of
from tritonpy_protos.model_config_pb2 import ModelConfig

from ..toys.doubler import Doubler
from ..toys.serving import ToyPlugin, toy_plugins


class Versatile(Doubler):
    runtimes = ("model.py",)


@pytest.fixture
def backends(tmp_path: Path) -> Backends:
    for name in ("mine", "both"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").touch()
    plugins = toy_plugins(ToyPlugin({"python": Doubler, "both": Doubler, "toy": Doubler, "versatile": Versatile}))
    return Backends(plugins, {}, {}, BackendFolders(tmp_path))


@pytest.mark.parametrize(
    ("backend", "given", "found"),
    [
        ("mine", "", "model.py"),
        ("mine", "model.py", "model.py"),
        ("both", "", ""),  # the plugin's name wins
        ("both", "model.py", "model.py"),
        ("toy", "", ""),
        ("nobody", "", ""),
        ("", "", ""),
        ("mine", "libtriton_mine.so", "libtriton_mine.so"),
        ("toy", "libtriton_toy.so", "libtriton_toy.so"),
        ("versatile", "model.py", "model.py"),  # it serves these itself
    ],
)
def test_a_folder_serves_what_no_plugin_does(backends: Backends, backend: str, given: str, found: str) -> None:
    assert runtime_of(ModelConfig(name="m", backend=backend, runtime=given), backends) == found


@pytest.mark.parametrize("backend", ["nobody", "python", "toy"])
def test_a_folder_that_is_asked_for_and_is_not_there(backends: Backends, tmp_path: Path, backend: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        runtime_of(ModelConfig(name="m", backend=backend, runtime="model.py"), backends)
    assert refused.value.message == (
        "unable to find Python backend based backend library 'model.py' for model 'm', "
        f"searched: '{tmp_path}/{backend}/model.py'"
    )


def test_a_backend_that_serves_the_runtime_itself_is_the_registered_one(backends: Backends) -> None:
    assert backends.get("versatile", "model.py") is Versatile
    assert backends.folder("versatile", "model.py") is None
