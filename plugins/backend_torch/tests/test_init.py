from __future__ import annotations

import subprocess
import sys

import tritonpy_backend_torch
from tritonpy_backend_torch.backend import TorchBackend


def test_the_hook_names_the_backend():
    target = tritonpy_backend_torch.tritonpy_backends()["pytorch"]
    module, _, name = target.partition(":")
    assert getattr(sys.modules[module], name) is TorchBackend


def test_importing_the_backend_does_not_import_torch():
    code = "import sys, tritonpy_backend_torch.backend; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
