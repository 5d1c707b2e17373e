from __future__ import annotations

import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_transformer.runtime import runtime, tokenizer_runtime


def test_the_libraries_are_those_that_are_installed():
    assert (runtime().__name__, tokenizer_runtime().__name__) == ("ctranslate2", "tokenizers")


@pytest.mark.parametrize(("find", "name"), [(runtime, "ctranslate2"), (tokenizer_runtime, "tokenizers")])
def test_a_library_that_is_missing_is_named_with_how_to_get_it(monkeypatch, find, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Unavailable, match=f"pip install {name}$"):
        find()
