"""Load a model's environment and print the log and the interpreter: `loader.py MODEL CACHE`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tritonpy_backend_python.environments import resolve_environment
from tritonpy_backend_python.options import PythonOptions

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
model = Path(sys.argv[1])
log = logging.LoggerAdapter(logging.getLogger("loader"), {})
environment = resolve_environment(
    model, model / "1", {}, PythonOptions(environments_dir=sys.argv[2]), log
)
print(f"interpreter {environment.interpreter}", flush=True)
