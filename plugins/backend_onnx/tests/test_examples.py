"""The models of `examples/` match their scripts and descriptions."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from tritonpy_backend_onnx.backend import OnnxRuntimeBackend
from tritonpy_testing import BackendHarness, model_config

EXAMPLES = Path(__file__).parents[3] / "examples"


def load(name, tmp_path):
    folder = EXAMPLES / "models" / name
    shutil.copytree(folder / "1", tmp_path / "1")
    return BackendHarness(
        OnnxRuntimeBackend, model_config((folder / "config.pbtxt").read_text()), tmp_path
    )


def test_the_digit_that_the_model_never_saw_is_recognised(tmp_path):
    request = json.loads((EXAMPLES / "digit.json").read_text())
    names = (EXAMPLES / "models" / "digits" / "labels.txt").read_text().split()
    with load("digits", tmp_path) as harness:
        image = np.array(request["inputs"][0]["data"], np.float32).reshape(1, 64)
        [[answer]] = harness.execute(harness.request({"image": image}))
    scores = answer.outputs[0].numpy()[0]
    assert scores.sum() == pytest.approx(1)
    assert request["id"] == f"a handwritten {names[int(scores.argmax())]}"


def test_the_script_of_add_sub_builds_the_committed_model():
    built = runpy.run_path(str(EXAMPLES / "make_add_sub.py"))["build"]()
    assert built == onnx.load(EXAMPLES / "models" / "add_sub" / "1" / "model.onnx")


def test_add_sub_adds_and_subtracts(tmp_path):
    with load("add_sub", tmp_path) as harness:
        rows = np.arange(16, dtype=np.int32).reshape(1, 16)
        [[answer]] = harness.execute(harness.request({"INPUT0": rows, "INPUT1": rows}))
    assert [tensor.numpy().tolist() for tensor in answer.outputs] == [
        (rows * 2).tolist(),
        (rows * 0).tolist(),
    ]
