"""The flags and formats that README names exist."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

from tritonpy_batch.command import BatchCommand, make_options
from tritonpy_batch.inputs.registry import INPUT_FORMATS
from tritonpy_batch.part_writer import WRITERS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def parser():
    made = argparse.ArgumentParser()
    BatchCommand().configure(made)
    return made


def test_every_flag_exists():
    known = {option for action in parser()._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", README))
    assert named - known == set()


def test_every_command_can_be_parsed():
    commands = re.findall(r"^tritonpy batch (.*)$", README, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert make_options(parser().parse_args(shlex.split(command))).model == "digits"


def test_every_format_is_named():
    text = README.lower()
    assert all(name in text for name in WRITERS)
    names = {"jsonl": "json lines", "openai": "openai batch file", "text": ".txt"}
    assert all(names.get(name, name) in text for name in INPUT_FORMATS)
