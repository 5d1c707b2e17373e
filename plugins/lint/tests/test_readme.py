"""The page shows the real output of the commands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tritonpy.cli import main
from tritonpy.plugins import make_plugin_manager

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
DIGITS = Path(__file__).parents[3] / "examples" / "models" / "digits"
BAD = """name: "digits"
backend: "onnxruntime"
max_batch_size: 64
input [{ name: "image" data_type: TYPE_FP64 dims: [ -1, 64 ] }]
output [{ name: "scorez" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "lab.txt" }]
dynamic_baching { }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example model."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DIGITS, tmp_path / "models" / "digits")
    return tmp_path


def test_the_output_of_lint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models" / "digits" / "config.pbtxt").write_text(BAD)
    assert main(["lint", "models"]) == 1
    printed = capsys.readouterr().out.split("\n\n")
    parts = BLOCKS[0].rstrip().split("\n\n")
    assert [part for part in parts if part not in [each.rstrip() for each in printed]] == []
    assert parts[0] == printed[0]


def test_the_output_of_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = next(block for block in BLOCKS if block.startswith("Model digits"))
    assert main(["explain", "models/digits"]) == 0
    assert capsys.readouterr().out.startswith(block)


def test_the_output_of_init(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(folder / "models" / "digits" / "1" / "model.onnx", folder / "digits.onnx")
    shutil.move(folder / "models" / "digits" / "labels.txt", folder / "labels.txt")
    shutil.rmtree(folder / "models")
    assert main(["init", "digits.onnx"]) == 0
    assert capsys.readouterr().out in BLOCKS


def test_every_option_is_in_the_table() -> None:
    import argparse

    for name in ("lint", "init"):
        parser = argparse.ArgumentParser()
        command = make_plugin_manager(only="lint").table("tritonpy_commands")[name].load()()
        command.configure(parser)
        options = {each for action in parser._actions for each in action.option_strings}
        assert {each for each in options if each not in README} == {"-h", "--help"} & options
