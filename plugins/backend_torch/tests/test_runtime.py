from __future__ import annotations

import importlib
import importlib.machinery
import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_torch import runtime


def test_a_missing_torch_gives_installation_instructions(monkeypatch):
    def refuse(name):
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(
        Unavailable,
        match=r"PyTorch cannot be imported \(No module named 'torch'\): pip install torch",
    ):
        runtime.import_pytorch()


def test_import_pytorch_returns_the_package_that_needs_torch():
    assert runtime.import_pytorch() is sys.modules["tritonpy_backend_torch.pytorch"]


@pytest.mark.parametrize("library", ["libtorch_cuda.so", "libtorch_cpu.so", None])
def test_a_cuda_build_is_detected_by_its_library(monkeypatch, tmp_path, library):
    spec = importlib.machinery.ModuleSpec("torch", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    (tmp_path / "lib").mkdir()
    if library is not None:
        (tmp_path / "lib" / library).touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert runtime.has_cuda() == (library == "libtorch_cuda.so")


def test_without_torch_there_is_no_cuda(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not runtime.has_cuda()
