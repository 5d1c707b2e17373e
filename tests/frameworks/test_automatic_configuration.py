"""The automatic configuration of a model without `config.pbtxt` equals a handwritten one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve, ServerProcess
from tests.frameworks.conftest import BATCH, FLAGS, load

DIGITS = """
max_batch_size: 64
input [{{ name: "{image}" data_type: TYPE_FP32 dims: [64] }}]
output [{{ name: "{scores}" data_type: TYPE_FP32 dims: [10] }}]
dynamic_batching {{ }}
"""
ENCODER = """
max_batch_size: 64
input [
  { name: "input_ids" data_type: TYPE_INT64 dims: [-1] },
  { name: "attention_mask" data_type: TYPE_INT64 dims: [-1] }
]
output [{ name: "sentence_embedding" data_type: TYPE_FP32 dims: [384] }]
dynamic_batching { }
"""
TOKENIZER = """
backend: "python"
max_batch_size: 4
input [{ name: "TEXT" data_type: TYPE_STRING dims: [1] }]
output [{ name: "input_ids" data_type: TYPE_INT64 dims: [-1] }, { name: "attention_mask" data_type: TYPE_INT64 dims: [-1] }]
dynamic_batching { }
"""


def _digits(head: str, image: str = "image", scores: str = "scores") -> str:
    return head + DIGITS.format(image=image, scores=scores)


# The handwritten configuration of each model that has no file.
BY_HAND = {
    "digits_onnx": _digits('backend: "onnxruntime"'),
    "digits_exported": _digits('platform: "torch_aoti"', scores="OUTPUT__0"),
    "digits_savedmodel": _digits('platform: "tensorflow_savedmodel"'),
    "digits_graphdef": _digits('platform: "tensorflow_graphdef"'),
    "digits_keras": _digits(
        'backend: "tensorflow" default_model_filename: "model.keras"', scores="output_0"
    ),
    "digits_openvino": _digits('backend: "openvino"'),
    "encoder_onnx": 'backend: "onnxruntime"' + ENCODER,
    "encoder_torch": 'platform: "torch_aoti"' + ENCODER.replace("sentence_embedding", "OUTPUT__0"),
    "encoder_openvino": 'backend: "openvino"' + ENCODER,
    "tokenizer": TOKENIZER,
}


def test_the_batch_size_by_hand_is_the_servers_default() -> None:
    assert all(
        f"max_batch_size: {BATCH}" in text for name, text in BY_HAND.items() if name != "tokenizer"
    )


@pytest.fixture(scope="module")
def by_hand(
    serve: Serve, made: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The same models, each with a handwritten configuration."""
    folder = tmp_path_factory.mktemp("by-hand")
    for name, text in BY_HAND.items():
        shutil.copytree(made / name, folder / name)
        assert not (folder / name / "config.pbtxt").exists(), "the model would not be completed"
        (folder / name / "config.pbtxt").write_text(text)
    with serve(f"--model-repository={folder}", *FLAGS) as served:
        for name in BY_HAND:
            load(served, name)
        yield served


@pytest.mark.parametrize("name", BY_HAND)
def test_the_automatic_configuration_equals_the_handwritten_one(
    served: ServerProcess, by_hand: ServerProcess, name: str
) -> None:
    assert config(served, name) == config(by_hand, name)


@pytest.mark.parametrize("name", BY_HAND)
def test_metadata_is_the_same_with_either_configuration(
    served: ServerProcess, by_hand: ServerProcess, name: str
) -> None:
    assert (
        served.request(f"/v2/models/{name}").json() == by_hand.request(f"/v2/models/{name}").json()
    )


def config(served: ServerProcess, name: str) -> Any:
    return served.request(f"/v2/models/{name}/config").json()
