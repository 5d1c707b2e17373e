"""Call a framework directly: `python -m bench.direct SUBJECT FOLDER ROWS`.

FOLDER is the version folder of a model. The framework chooses its number of threads.
`bench.repeated_work` controls the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.framework_work import SUBJECTS
from bench.repeated_work import serve_commands

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
Run = Callable[[Inputs], object]


def main() -> None:
    """Load the model, then execute it on command."""
    name, folder, rows = sys.argv[1:]
    subject = next(subject for subject in SUBJECTS if subject.name == name)
    inputs = subject.kind.arrays(int(rows))
    run = OPENERS[subject.framework](Path(folder))
    serve_commands(lambda: run(inputs))


def _onnxruntime(folder: Path) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        folder / "model.onnx", providers=["CPUExecutionProvider"]
    )
    return lambda inputs: session.run(None, dict(inputs))


def _torch(folder: Path) -> Run:
    import torch

    scripted = folder / "model.pt"
    model = (
        torch.jit.load(scripted)
        if scripted.exists()
        else torch.export.load(folder / "model.pt2").module()
    )

    def run(inputs: Inputs) -> object:
        with torch.inference_mode():
            return model(*map(torch.from_numpy, inputs.values())).numpy()

    return run


def _tensorflow(folder: Path) -> Run:
    import tensorflow as tf

    loaded = tf.saved_model.load(str(folder / "model.savedmodel"))
    infer = loaded.signatures["serving_default"]
    return lambda inputs: [
        each.numpy()
        for each in infer(**{name: tf.constant(array) for name, array in inputs.items()}).values()
    ]


def _openvino(folder: Path) -> Run:
    import openvino

    compiled = openvino.Core().compile_model(folder / "model.xml", "CPU")
    return lambda inputs: list(compiled(dict(inputs)).values())


def _transformer(folder: Path) -> Run:
    import ctranslate2

    encoder = ctranslate2.Encoder(str(folder / "model"))

    def run(inputs: Inputs) -> object:
        ids, mask = inputs.values()
        states = np.array(encoder.forward_batch(ids.tolist()).last_hidden_state)
        means = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    return run


OPENERS: Mapping[str, Callable[[Path], Run]] = {
    "onnxruntime": _onnxruntime,
    "pytorch": _torch,
    "tensorflow": _tensorflow,
    "openvino": _openvino,
    "transformer": _transformer,
}

if __name__ == "__main__":
    main()
