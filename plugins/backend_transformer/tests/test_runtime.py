from __future__ import annotations

import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_transformer.runtime import runtime, tokenizer_runtime


def test_installed_libraries_are_returned():
    assert (runtime().__name__, tokenizer_runtime().__name__) == ("ctranslate2", "tokenizers")


@pytest.mark.parametrize(
    ("find", "name"), [(runtime, "ctranslate2"), (tokenizer_runtime, "tokenizers")]
)
def test_a_missing_library_is_an_error_with_a_remedy(monkeypatch, find, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Unavailable, match=f"pip install {name}$"):
        find()
