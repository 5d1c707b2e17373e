from __future__ import annotations

import subprocess
import sys

import tritonpy_backend_transformer
from tritonpy_backend_transformer.backend import TransformerBackend


def test_the_hook_names_the_backend():
    target = tritonpy_backend_transformer.tritonpy_backends()["transformer"]
    module, _, name = target.partition(":")
    assert getattr(sys.modules[module], name) is TransformerBackend


def test_importing_the_backend_imports_no_framework():
    code = (
        "import sys, tritonpy_backend_transformer.backend;"
        "sys.exit(bool({'ctranslate2', 'tokenizers', 'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
