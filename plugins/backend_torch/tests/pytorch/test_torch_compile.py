from __future__ import annotations

import warnings

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.pytorch import torch_compile
from tritonpy_backend_torch.pytorch.torch_compile import compile_module, has_compiler

from ..models import Linear


def test_compiled_code_gives_the_same_results(tmp_path, monkeypatch):
    if not has_compiler():
        pytest.skip("needs a C++ compiler")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x = torch.tensor([[1.0, 2.0, 3.0]])
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        assert compile_module(Linear(), {"options": {"cpp.simdlen": 0}})(x).tolist() == [[6, 12]]


def test_without_a_compiler_only_models_that_need_it_are_rejected(monkeypatch):
    monkeypatch.setattr(torch_compile, "has_compiler", lambda: False)
    with pytest.raises(
        InvalidArgument, match=r"torch\.compile needs a C\+\+ compiler on the server"
    ):
        compile_module(Linear(), {"dynamic": True})
    for arguments in ({"backend": "eager"}, {"disable": True}):
        assert compile_module(Linear(), arguments)(torch.ones(1, 3)).tolist() == [[3, 6]]


def test_a_missing_compiler_is_noticed(monkeypatch):
    from torch._inductor import cpp_builder

    def fail():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", fail)
    assert not has_compiler()


@pytest.mark.parametrize("arguments", [{"speed": "high"}, {"backend": "unknown"}])
def test_invalid_compile_arguments_are_rejected(monkeypatch, arguments):
    monkeypatch.setattr(torch_compile, "has_compiler", lambda: True)
    with pytest.raises(
        InvalidArgument,
        match=r"torch\.compile rejects the arguments in TORCH_COMPILE_OPTIONAL_PARAMETERS: ",
    ):
        compile_module(Linear(), arguments)
