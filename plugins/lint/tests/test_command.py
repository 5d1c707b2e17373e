"""The command lint: formats, exit statuses and fixes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import tritonpy_lint
from tritonpy.cli import main
from tritonpy_lint.command import LintCommand
from tritonpy_testing import CommandContract

TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
BAD = f'backend: "python"\ndynamic_baching {{ }}\n{TENSORS}'
ADVISED = f'backend: "python"\nmax_batch_size: 8\n{TENSORS}'


class TestLint(CommandContract):
    plugin = tritonpy_lint
    plugin_class = LintCommand
    name = "lint"
    arguments = ("no-such-folder",)
    status = 2


@pytest.fixture
def bad(repository) -> Path:
    repository.add("bad", BAD)
    return repository.path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main(["lint", *map(str, arguments)])
    return status, capsys.readouterr().out


def test_the_text_shows_the_line_the_reason_and_the_fix(bad: Path, capsys) -> None:
    status, text = run(capsys, bad)
    assert status == 1
    assert "error[F007]: unknown field 'dynamic_baching'" in text
    assert f"--> {bad}/bad/config.pbtxt:2:1" in text
    assert "2 | dynamic_baching { }\n  | ^^^^^^^^^^^^^^^\n" in text
    assert "= fix:  rename the field to 'dynamic_batching' (--fix)" in text
    assert "1 error in 1 model. --fix removes 1." in text
    assert "\x1b" not in text


def test_exit_statuses(repository, capsys) -> None:
    repository.add("advised", ADVISED)
    assert run(capsys, repository.path)[0] == 0
    assert run(capsys, repository.path, "--fail-on", "advice")[0] == 1
    assert run(capsys, repository.path, "--nonsense")[0] == 2
    assert run(capsys, repository.path / "none")[0] == 2


def test_json_has_every_part_of_a_finding(bad: Path, capsys) -> None:
    status, text = run(capsys, bad, "--json")
    assert status == 1
    report = json.loads(text)
    [finding] = report["findings"]
    assert (finding["code"], finding["line"], finding["column"]) == ("F007", 2, 1)
    assert finding["fix"] == {"title": "rename the field to 'dynamic_batching'", "safe": True}
    assert report["models"] == ["bad"]
    assert report["counts"] == {"error": 1, "warning": 0, "advice": 0}


def test_sarif_names_rule_place_and_replacement(bad: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(bad.parent)
    _, text = run(capsys, "models", "--format", "sarif")
    [run_] = json.loads(text)["runs"]
    assert run_["tool"]["driver"]["rules"][0]["id"] == "F007"
    [result] = run_["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "models/bad/config.pbtxt"
    assert place["region"] == {"startLine": 2, "startColumn": 1}
    [change] = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert change["insertedContent"] == {"text": "dynamic_batching"}


def test_github_and_junit(bad: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(bad.parent)
    _, text = run(capsys, "models", "--format", "github")
    assert text.startswith("::error file=models/bad/config.pbtxt,line=2,col=1,title=F007 ")
    _, text = run(capsys, "models", "--format", "junit")
    suite = ET.fromstring(text)  # noqa: S314 - our own output
    assert suite.find("testcase[@name='bad']/failure").get("type") == "F007"


def test_fix_and_diff(bad: Path, capsys) -> None:
    before = (bad / "bad" / "config.pbtxt").read_text()
    _, text = run(capsys, bad, "--diff")
    assert "+dynamic_batching { }" in text
    assert (bad / "bad" / "config.pbtxt").read_text() == before
    status, text = run(capsys, bad, "--fix")
    assert status == 0
    after = (bad / "bad" / "config.pbtxt").read_text()
    assert after == before.replace("dynamic_baching", "dynamic_batching")
    assert run(capsys, bad, "--fix")[0] == 0
    assert (bad / "bad" / "config.pbtxt").read_text() == after


def test_another_machine_may_be_given(repository, capsys) -> None:
    repository.add("gpu", f"{ADVISED}instance_group {{ kind: KIND_GPU count: 2 gpus: [ 1 ] }}\n")
    assert run(capsys, repository.path, "--gpus", 1)[0] == 1
    assert run(capsys, repository.path, "--gpus", 2)[0] == 0
    assert run(capsys, repository.path, "--memory", "lots")[0] == 2


def test_no_framework_is_imported(bad: Path) -> None:
    script = (
        "import sys; from tritonpy.cli import main; "
        f"main(['lint', {str(bad)!r}]); "
        "print([name for name in ('onnxruntime', 'torch', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
