"""Models in every form, built where a test needs them."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from tritonpy.testing import BackendHarness, model_config
from tritonpy_backend_torch.backend import TorchBackend

from .making import AddSub, Models

# Compiling takes long; how fast the result is matters to no test.
QUICKLY = {"aot_inductor.compile_wrapper_opt_level": "O0", "aot_inductor.precompile_headers": False}


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Writes models of version 1 in the test's folder."""
    return Models(tmp_path / "1")


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., BackendHarness]:
    """`load(config, **options)`: the harness of the model in the test's folder; enter it."""

    def make(text: str = 'name: "m" backend: "pytorch"', **options: Any) -> BackendHarness:
        return BackendHarness(TorchBackend, model_config(text), tmp_path, options)

    return make


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of AOTInductor of AddSub for rows of 16 numbers: made once, it takes a compiler half a minute."""
    path = tmp_path_factory.mktemp("compiled") / "model.pt2"
    arguments, rows = torch.zeros(2, 3, 16, dtype=torch.int32).unbind(), {0: Dim("batch")}
    program = torch.export.export(AddSub(), arguments, dynamic_shapes={"INPUT0": rows, "INPUT1": rows})
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(path.parent / "cache"))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=QUICKLY)
    return path


@pytest.fixture
def package(models: Models, compiled: Path) -> Path:
    """The package of `compiled` as the test's model."""
    return Path(shutil.copy(compiled, models.at("model.pt2")))


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Instances set the threads of the thread that they run on; that of the tests is left as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
