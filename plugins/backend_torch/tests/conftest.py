"""Models in every format, built on demand."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from tritonpy_backend_torch.backend import TorchBackend
from tritonpy_testing import BackendHarness, model_config

from .models import AddSub, Models

# Compiling is slow, and no test depends on the speed of the result.
QUICKLY = {"aot_inductor.compile_wrapper_opt_level": "O0", "aot_inductor.precompile_headers": False}


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Writes models into version 1 in the test's folder."""
    return Models(tmp_path / "1")


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., BackendHarness]:
    """`load(config, **options)`: the harness of the model in the test's folder, to be entered."""

    def make(text: str = 'name: "m" backend: "pytorch"', **options: Any) -> BackendHarness:
        return BackendHarness(TorchBackend, model_config(text), tmp_path, options)

    return make


@pytest.fixture(scope="session")
def compile_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The AOTInductor package of AddSub for rows of 16 numbers.

    It is built once, since compiling takes half a minute.
    """
    path = tmp_path_factory.mktemp("compiled") / "model.pt2"
    arguments, rows = torch.zeros(2, 3, 16, dtype=torch.int32).unbind(), {0: Dim("batch")}
    program = torch.export.export(
        AddSub(), arguments, dynamic_shapes={"INPUT0": rows, "INPUT1": rows}
    )
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(path.parent / "cache"))
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(path), inductor_configs=QUICKLY
        )
    return path


@pytest.fixture
def package(models: Models, compile_module: Path) -> Path:
    """The package of `compiled` as the test's model."""
    return Path(shutil.copy(compile_module, models.at("model.pt2")))


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Restore the thread counts, which instances set for their thread.

    Tests run instances on their own thread.
    """
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
