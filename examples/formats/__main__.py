"""Train the digits model: `python -m examples.formats FOLDER [FORMAT …]`.

Each format becomes a model `digits_FORMAT` in the repository FOLDER, without `config.pbtxt` if the
format describes itself. `FOLDER/../digits.npz` stores the weights for later runs.

    pip install scikit-learn torch onnx onnxscript  # and tensorflow, openvino for their formats
    python -m examples.formats models onnx torchscript
    tritonpy serve --model-repository models
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import numpy as np

# format -> the module that writes it, and its function there
WRITERS = {
    "onnx": ("torch_formats", "write_onnx"),
    "torchscript": ("torch_formats", "write_torchscript"),
    "exported": ("torch_formats", "write_exported"),
    "savedmodel": ("tensorflow_formats", "write_savedmodel"),
    "graphdef": ("tensorflow_formats", "write_graphdef"),
    "keras": ("tensorflow_formats", "write_keras"),
    "openvino": ("openvino_formats", "write_ir"),
}
# TorchScript has no shapes, and its inputs and outputs are numbered.
TORCHSCRIPT = """\
platform: "pytorch_libtorch"
max_batch_size: 64
input [{ name: "INPUT__0" data_type: TYPE_FP32 dims: [64] }]
output [{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: [10] }]
dynamic_batching { }
"""


def main() -> None:
    """Train if no weights are stored, and write the formats."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(WRITERS))
    arguments = parser.parse_args()
    formats = arguments.formats or list(WRITERS)
    unknown = [name for name in formats if name not in WRITERS]
    if unknown:
        parser.error(f"no format '{unknown[0]}', available: {', '.join(WRITERS)}")
    weights = _weights(arguments.folder.parent / "digits.npz")
    for name in formats:
        module, function = WRITERS[name]
        folder = arguments.folder / f"digits_{name}" / "1"
        folder.mkdir(parents=True, exist_ok=True)
        getattr(importlib.import_module(f"examples.formats.{module}"), function)(folder, weights)
        if name == "torchscript":
            (folder.parent / "config.pbtxt").write_text(TORCHSCRIPT)
        print(f"wrote {folder}")


def _weights(file: Path) -> dict[str, np.ndarray]:
    if not file.exists():
        from examples.formats.network import train

        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **train())
    with np.load(file) as stored:
        return dict(stored)


if __name__ == "__main__":
    main()
