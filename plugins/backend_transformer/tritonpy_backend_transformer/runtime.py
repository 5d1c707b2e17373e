"""Imports of CTranslate2 and `tokenizers`, made when the first model is loaded."""

from __future__ import annotations

import os
from typing import Any

from tritonpy import Unavailable

# On AMD processors without VNNI, CTranslate2's default library for int8 overflows: hidden states of
# a normalized layer are off by 1. MKL is exact there, and is the default on Intel. CTranslate2
# reads the variable when it is imported.
os.environ.setdefault("CT2_USE_MKL", "1")


def runtime() -> Any:
    """Return the module `ctranslate2`. Raises `Unavailable` if it is not installed."""
    try:
        import ctranslate2
    except ImportError as error:
        raise Unavailable(
            f"CTranslate2 cannot be imported ({error}): pip install ctranslate2"
        ) from error
    return ctranslate2


def tokenizer_runtime() -> Any:
    """Return the module `tokenizers`. Raises `Unavailable` if it is not installed."""
    try:
        import tokenizers
    except ImportError as error:
        raise Unavailable(
            f"the package tokenizers cannot be imported ({error}): pip install tokenizers"
        ) from error
    return tokenizers
