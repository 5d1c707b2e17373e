"""The flags and metrics that README names exist, and its output has the form of a report."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

from tritonpy_analyzer.command import AnalyzeCommand, make_options
from tritonpy_analyzer.goals import Metric
from tritonpy_analyzer.report.text import study_text

from .studies import study

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def parser():
    made = argparse.ArgumentParser()
    AnalyzeCommand().configure(made)
    return made


def test_every_flag_and_metric_exists():
    known = {option for action in parser()._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", README))
    assert named - known == set()
    text = README.split("Metrics are", 1)[1].split("Units", 1)[0]
    assert set(re.findall(r"`([a-z0-9.]+)`", text)) == set(Metric)


def test_every_command_can_be_parsed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "examples" / "models").mkdir(parents=True)
    commands = re.findall(r"^tritonpy analyze (.*)$", README, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert make_options(parser().parse_args(shlex.split(command))).models == ("digits",)


def test_the_output_has_the_lines_of_a_report():
    displayed = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)

    def labels(text):
        return [line.split()[0] for line in text.splitlines() if line.startswith("    ")][:5]

    assert labels(displayed) == ["rate", "checked", "latency", "memory", "gain"]
    made = study()
    made.recommended.checked_rate = 700.0
    assert labels(study_text(made)) == labels(displayed)
