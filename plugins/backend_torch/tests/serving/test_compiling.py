from __future__ import annotations

import warnings

import pytest
import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.serving import compiling
from tritonpy_backend_torch.serving.compiling import compiled, has_compiler

from ..making import Linear


def test_the_default_compiler_makes_code_that_gives_the_same(tmp_path, monkeypatch):
    if not has_compiler():
        pytest.skip("needs a C++ compiler")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x = torch.tensor([[1.0, 2.0, 3.0]])
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        assert compiled(Linear(), {"options": {"cpp.simdlen": 0}})(x).tolist() == [[6, 12]]


def test_without_a_compiler_the_model_is_refused_unless_it_does_not_need_one(monkeypatch):
    monkeypatch.setattr(compiling, "has_compiler", lambda: False)
    with pytest.raises(InvalidArgument, match=r"torch\.compile needs a C\+\+ compiler on the machine that serves"):
        compiled(Linear(), {"dynamic": True})
    for arguments in ({"backend": "eager"}, {"disable": True}):
        assert compiled(Linear(), arguments)(torch.ones(1, 3)).tolist() == [[3, 6]]


def test_a_missing_compiler_is_noticed(monkeypatch):
    from torch._inductor import cpp_builder

    def fail():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", fail)
    assert not has_compiler()


@pytest.mark.parametrize("arguments", [{"speed": "high"}, {"backend": "nobody"}])
def test_arguments_that_torch_does_not_take_are_refused(monkeypatch, arguments):
    monkeypatch.setattr(compiling, "has_compiler", lambda: True)
    with pytest.raises(
        InvalidArgument, match=r"torch\.compile refuses what TORCH_COMPILE_OPTIONAL_PARAMETERS asks for: "
    ):
        compiled(Linear(), arguments)
