"""The command init: models that load and answer, and plugins whose contract tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritonpy_lint
from tritonpy import hookspecs
from tritonpy.cli import main
from tritonpy.config import read_config_text
from tritonpy_lint.init_command import InitCommand
from tritonpy_lint.linting import LintOptions, lint
from tritonpy_lint.plugin_scaffold import KINDS, init_plugin
from tritonpy_testing import CommandContract

DIGITS = Path(__file__).parents[3] / "examples" / "models" / "digits"
SINGULAR = {"batch_policies": "batch_policy", "residency_policies": "residency_policy",
            "repositories": "repository", "caches": "cache"}  # fmt: skip


class TestInit(CommandContract):
    plugin = tritonpy_lint
    plugin_class = InitCommand
    name = "init"
    arguments = ()
    status = 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with a model file and its labels."""
    monkeypatch.chdir(tmp_path)
    for source, name in ((DIGITS / "1" / "model.onnx", "seven.onnx"), (DIGITS / "labels.txt", "")):
        (tmp_path / (name or source.name)).write_bytes(source.read_bytes())
    return tmp_path


def pytest_of(*paths: Path, modules: list[Path]) -> None:
    """Run tests in a process of their own, with `modules` as import paths."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, modules))}
    done = subprocess.run(
        [*command, *map(str, paths)], cwd="/", env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_model_file_becomes_a_model_that_answers_its_sample(folder: Path, capsys) -> None:
    assert main(["init", "seven.onnx"]) == 0
    assert "curl localhost:8000/v2/models/seven/infer" in capsys.readouterr().out
    model = folder / "models" / "seven"
    text = (model / "config.pbtxt").read_text()
    config = read_config_text(text).config
    assert config.output[0].label_filename == "labels.txt"
    assert config.HasField("dynamic_batching")
    assert config.model_warmup[0].inputs["image"].zero_data
    assert text.count("\n# ") > 3
    assert lint(LintOptions(paths=[str(folder / "models")])).findings == []
    compile((model / "client.py").read_text(), "client.py", "exec")
    pytest_of(model / "test_model.py", modules=[])


def test_a_python_model_answers_its_sample(folder: Path, capsys) -> None:
    assert main(["init", "--python", "doubler", "--json"]) == 0
    [model] = json.loads(capsys.readouterr().out)["models"]
    assert model["backend"] == "python"
    assert "1/model.py" in model["files"]
    assert lint(LintOptions(paths=["models"])).findings == []
    pytest_of(folder / "models" / "doubler" / "test_model.py", modules=[])


def test_files_may_be_linked_and_named(folder: Path, capsys) -> None:
    assert main(["init", "seven.onnx", "--link", "--name", "digits", "--into", "repo"]) == 0
    assert (folder / "repo" / "digits" / "1" / "model.onnx").is_symlink()
    capsys.readouterr()


def test_nothing_is_overwritten_and_failures_leave_nothing(folder: Path, capsys) -> None:
    assert main(["init", "seven.onnx"]) == 0
    assert main(["init", "seven.onnx"]) == 1
    assert "exists" in capsys.readouterr().err
    (folder / "bad.onnx").write_bytes(b"no model")
    assert main(["init", "bad.onnx"]) == 1
    assert not (folder / "models" / "bad").exists()
    (folder / "old.caffemodel").write_bytes(b"x")
    assert main(["init", "old.caffemodel"]) == 1
    assert "known are: .onnx" in capsys.readouterr().err
    (folder / "m.plan").write_bytes(b"x")
    assert main(["init", "m.plan"]) == 1
    assert "tritonpy-backend-trt" in capsys.readouterr().err
    assert main(["init", "seven.onnx", "other.onnx", "--name", "x"]) == 2


def test_folders_of_transformers_say_what_is_missing(folder: Path, capsys) -> None:
    (folder / "hub").mkdir()
    (folder / "hub" / "model.safetensors").write_bytes(b"x")
    assert main(["init", "hub"]) == 1
    assert "ct2-transformers-converter --model hub" in capsys.readouterr().err
    (folder / "converted").mkdir()
    (folder / "converted" / "model.bin").write_bytes(b"x")
    assert main(["init", "converted"]) == 1
    assert "backend 'transformer'" in capsys.readouterr().err


def test_labels_that_fit_no_output_are_noted(folder: Path, capsys) -> None:
    (folder / "labels.txt").write_text("one\ntwo\n")
    assert main(["init", "seven.onnx"]) == 0
    assert "2 lines, which fit no output" in capsys.readouterr().out
    assert not (folder / "models" / "seven" / "labels.txt").exists()


def test_a_server_yaml_is_valid(folder: Path, capsys) -> None:
    (folder / "models").mkdir()
    assert main(["init", "--server"]) == 0
    assert lint(LintOptions(server=Path("server.yaml"))).findings == []
    assert main(["init", "--server"]) == 1
    capsys.readouterr()


def test_a_configuration_is_normalized(folder: Path, capsys) -> None:
    (folder / "config.pbtxt").write_text('backend: "python" max_batch_size: 4 dynamic_batching {}')
    assert main(["init", "--from-config", "config.pbtxt"]) == 0
    config = read_config_text(capsys.readouterr().out).config
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    (folder / "config.pbtxt").write_text("backnd: 1")
    assert main(["init", "--from-config", "config.pbtxt"]) == 1
    capsys.readouterr()


def test_every_kind_of_plugin_can_be_made() -> None:
    kinds = {
        SINGULAR.get(name, name.removesuffix("s"))
        for hook in hookspecs.registration_hooks()
        for name in [hook.removeprefix("tritonpy_")]
    }
    assert set(KINDS) == kinds


def test_the_contract_test_of_every_kind_passes(tmp_path: Path) -> None:
    made = [Path(init_plugin(kind, f"my_{kind}", tmp_path).folder) for kind in KINDS]
    pytest_of(*made, modules=made)


def test_a_plugin_package_has_its_metadata(folder: Path, capsys) -> None:
    assert main(["init", "--plugin", "cache", "fast-cache"]) == 0
    text = (folder / "fast_cache" / "pyproject.toml").read_text()
    assert 'name = "tritonpy-fast-cache"' in text
    assert 'fast_cache = "fast_cache"' in text
    assert "class FastCacheCache(Cache)" in (folder / "fast_cache" / "fast_cache.py").read_text()
    assert main(["init", "--plugin", "cache", "fast_cache"]) == 1
    assert main(["init", "--plugin", "nothing", "name"]) == 1
    assert main(["init", "--plugin", "cache", "class"]) == 1
    assert "lower case" in capsys.readouterr().err
