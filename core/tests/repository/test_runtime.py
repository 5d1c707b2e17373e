from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.errors import InvalidArgument
from tritonpy.plugins.backend_folders import BackendFolders
from tritonpy.plugins.backends import Backends
from tritonpy.repository.runtime import resolve_runtime
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
        ("both", "", ""),  # the plugin takes precedence
        ("both", "model.py", "model.py"),
        ("toy", "", ""),
        ("missing", "", ""),
        ("", "", ""),
        ("mine", "libtriton_mine.so", "libtriton_mine.so"),
        ("toy", "libtriton_toy.so", "libtriton_toy.so"),
        ("versatile", "model.py", "model.py"),  # the plugin serves this runtime
    ],
)
def test_a_backend_folder_serves_models_that_no_plugin_serves(
    backends: Backends, backend: str, given: str, found: str
) -> None:
    assert resolve_runtime(ModelConfig(name="m", backend=backend, runtime=given), backends) == found


@pytest.mark.parametrize("backend", ["missing", "python", "toy"])
def test_a_missing_backend_folder_is_an_error(backends: Backends, tmp_path: Path, backend: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        resolve_runtime(ModelConfig(name="m", backend=backend, runtime="model.py"), backends)
    assert refused.value.message == (
        "unable to find Python backend based backend library 'model.py' for model 'm', "
        f"searched: '{tmp_path}/{backend}/model.py'"
    )


def test_a_backend_that_serves_the_runtime_itself_is_the_registered_one(backends: Backends) -> None:
    assert backends.get("versatile", "model.py") is Versatile
    assert backends.folder("versatile", "model.py") is None
