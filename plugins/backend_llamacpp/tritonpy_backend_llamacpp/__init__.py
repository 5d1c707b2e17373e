"""The backend `llamacpp`: GGUF files on llama.cpp's engine, in a worker of the Python backend.

`backend/` is the folder of the backend: `model.py` is the entry point of a worker, and
`tritonpy_llamacpp` its parts. They import only xllamacpp, llguidance, numpy and the modules of the
Python backend. So the worker may run in an environment of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonpy import hookimpl


@hookimpl
def tritonpy_backend_folders() -> Mapping[str, Path]:
    """Register the folder of the backend `llamacpp`, which the Python backend executes."""
    return {"llamacpp": Path(__file__).parent / "backend"}
