"""The one place that imports CTranslate2 and `tokenizers`: when the first model loads."""

from __future__ import annotations

from typing import Any

from tritonpy import Unavailable


def runtime() -> Any:
    """Return the module `ctranslate2`; raises Unavailable where it is not installed."""
    try:
        import ctranslate2
    except ImportError as error:
        raise Unavailable(f"CTranslate2 cannot be imported ({error}): pip install ctranslate2") from error
    return ctranslate2


def tokenizer_runtime() -> Any:
    """Return the module `tokenizers`; raises Unavailable where it is not installed."""
    try:
        import tokenizers
    except ImportError as error:
        raise Unavailable(f"the package tokenizers cannot be imported ({error}): pip install tokenizers") from error
    return tokenizers
