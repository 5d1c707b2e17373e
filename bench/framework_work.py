"""Models with executions of at least 10 ms for each backend.

The models are those of `examples/formats` and `examples/sentences`, with configurations for the
batch size, the number of instances and the threads.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.processes import ROOT

Array = npt.NDArray[Any]
DIGITS, TEXTS, TOKENS = 16384, 8, 64
WORDS = 30000  # upper bound of ordinary token ids in the encoder's vocabulary
CONFIG = """\
{head}
max_batch_size: {batch}
input [{inputs}]
output [{outputs}]
instance_group [{{ count: {count} kind: KIND_CPU }}]
{parameters}
"""


@dataclass(frozen=True)
class Kind:
    """Inputs and outputs of a model: name -> (data type in the configuration, dims)."""

    inputs: dict[str, tuple[str, str]]
    outputs: dict[str, tuple[str, str]]
    batch: int

    def arrays(self, rows: int) -> dict[str, Array]:
        """Return inputs of `rows` rows; every call returns the same values."""
        random = np.random.default_rng(0)
        if "FP32" in {kind for kind, _ in self.inputs.values()}:
            return {
                name: random.integers(0, 17, (rows, 64)).astype(np.float32) for name in self.inputs
            }
        ids, mask = self.inputs
        return {
            ids: random.integers(1000, WORDS, (rows, TOKENS)),
            mask: np.ones((rows, TOKENS), np.int64),
        }

    def output_arrays(self, rows: int) -> dict[str, Array]:
        """Return outputs of the correct size for a payload."""
        return {
            name: np.zeros((rows, int(dims)), np.float32)
            for name, (_, dims) in self.outputs.items()
        }


@dataclass(frozen=True)
class Subject:
    """A model of one backend: the folder `made` of its files, configuration, thread options."""

    framework: str
    made: str
    kind: Kind
    head: str
    threads: tuple[str, ...]
    more: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.framework}, {self.made.replace('_', ' ')}"

    def config(self, count: int, threads: int) -> str:
        """Return a configuration of `count` instances with `threads` each (0: default)."""
        parameters = {
            **self.more,
            **({name: str(threads) for name in self.threads} if threads else {}),
        }
        return CONFIG.format(
            head=self.head, batch=self.kind.batch, count=count,
            inputs=_tensors(self.kind.inputs), outputs=_tensors(self.kind.outputs),
            parameters="\n".join(
                (
                    f'parameters {{ key: "{key}" value {{ '
                    f'string_value: "{value}" }} }}'
                ) for key, value in parameters.items()
            ),
        )  # fmt: skip


def _tensors(tensors: dict[str, tuple[str, str]]) -> str:
    return ", ".join(
        f'{{ name: "{name}" data_type: TYPE_{kind} dims: [{dims}] }}'
        for name, (kind, dims) in tensors.items()
    )


def _digits(image: str = "image", scores: str = "scores") -> Kind:
    return Kind({image: ("FP32", "64")}, {scores: ("FP32", "10")}, DIGITS)


def _encoder(
    ids: str = "input_ids", mask: str = "attention_mask", embedding: str = "sentence_embedding"
) -> Kind:
    return Kind({ids: ("INT64", "-1"), mask: ("INT64", "-1")}, {embedding: ("FP32", "384")}, TEXTS)


_ORT, _TORCH, _OPENVINO = (
    ("intra_op_thread_count",),
    ("INTRA_OP_THREAD_COUNT",),
    ("INFERENCE_NUM_THREADS",),
)
_TF, _TRANSFORMER = ("TF_NUM_INTRA_THREADS", "TF_NUM_INTER_THREADS"), ("intra_op_thread_count",)
SUBJECTS = (
    Subject("onnxruntime", "digits_onnx", _digits(), 'backend: "onnxruntime"', _ORT),
    Subject("onnxruntime", "encoder_onnx", _encoder(), 'backend: "onnxruntime"', _ORT),
    Subject(
        "pytorch",
        "digits_torchscript",
        _digits("INPUT__0", "OUTPUT__0"),
        'platform: "pytorch_libtorch"',
        _TORCH,
    ),
    Subject(
        "pytorch", "digits_exported", _digits(scores="OUTPUT__0"), 'platform: "torch_aoti"', _TORCH
    ),
    Subject(
        "pytorch",
        "encoder_torch",
        _encoder(embedding="OUTPUT__0"),
        'platform: "torch_aoti"',
        _TORCH,
    ),
    Subject("tensorflow", "digits_savedmodel", _digits(), 'platform: "tensorflow_savedmodel"', _TF),
    Subject("openvino", "digits_openvino", _digits(), 'backend: "openvino"', _OPENVINO),
    Subject("openvino", "encoder_openvino", _encoder(), 'backend: "openvino"', _OPENVINO),
    Subject(
        "transformer",
        "encoder_transformer",
        _encoder(embedding="embedding"),
        'backend: "transformer"',
        _TRANSFORMER,
    ),
)
MADE_BY = (
    ("examples.formats", "digits", ("onnx", "torchscript", "exported", "openvino")),
    ("examples.formats", "digits", ("savedmodel",)),
    ("examples.sentences", "encoder", ("onnx", "torch", "openvino", "transformer")),
)


def make(folder: Path, subjects: tuple[Subject, ...]) -> None:
    """Write the missing model files of `subjects` with the scripts in `examples/`."""
    missing = {subject.made for subject in subjects if not (folder / subject.made).is_dir()}
    for module, prefix, formats in MADE_BY:
        chosen = [form for form in formats if f"{prefix}_{form}" in missing]
        if chosen:
            subprocess.run(
                [sys.executable, "-m", module, str(folder), *chosen],
                cwd=ROOT,
                check=True,
                capture_output=True,
            )


def serve_as(
    made: Path, repository: Path, subject: Subject, name: str, count: int = 1, threads: int = 0
) -> None:
    """Add `subject` to `repository` as the model `name`."""
    (repository / name).mkdir(parents=True)
    (repository / name / "1").symlink_to((made / subject.made / "1").resolve())
    (repository / name / "config.pbtxt").write_text(subject.config(count, threads))
