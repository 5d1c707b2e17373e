"""The examples of README work; they run with fewer requests."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tritonpy.cli import main
from tritonpy_bench.command import BenchCommand
from tritonpy_bench.flags import add_flags
from tritonpy_testing import running_server

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "plugins" / "bench" / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^tritonpy bench .*$", README, re.MULTILINE)


def test_the_three_examples_work_in_order(tmp_path, monkeypatch, capsys):
    sweep, rate, report, _ = COMMANDS
    monkeypatch.chdir(tmp_path)
    config = {
        "repositories": [{"url": str(ROOT / "examples" / "models")}],
        "frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False},
    }
    with running_server(config) as server:
        for command in (sweep, rate):
            addressed = command.replace("localhost:8000", server.http).replace(
                "localhost:8001", server.grpc
            )
            few = ["--request-count", "30", "--latency-threshold", "60000"]
            assert main([*shlex.split(addressed)[1:], *few]) == 0, capsys.readouterr().err
    assert main(shlex.split(report)[1:]) == 0
    assert [
        level["level"] for level in json.loads((tmp_path / "sweep.json").read_text())["levels"]
    ] == [1, 5, 9]
    assert (tmp_path / "sweep.csv").read_text().count("\n") == 4
    for page in ("sweep.html", "both.html"):
        assert "<svg" in (tmp_path / page).read_text()
    assert "2 results" in (tmp_path / "both.html").read_text()


def test_the_flags_in_readme_exist():
    import argparse

    parser = argparse.ArgumentParser()
    add_flags(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", README)) - {
        "--perf-analyzer",
        "--triton",
        "--ssl",
    }
    assert named - known == set()
    assert named


@pytest.mark.parametrize("flag", ["--concurrency-range", "--ssl-grpc-use-ssl", "--report"])
def test_the_help_lists_flags(capsys, flag):
    assert main(["bench", "--help-all"]) == 0
    printed = capsys.readouterr().out
    assert flag in printed
    assert (BenchCommand.__doc__ or "").splitlines()[0] in printed
