"""The flags that README names exist, and its commands can be parsed."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from tritonpy_balance.command import BalanceCommand, make_options
from tritonpy_balance.options import InvalidBackend

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def parser():
    made = argparse.ArgumentParser()
    BalanceCommand().configure(made)
    return made


def test_every_flag_exists():
    known = {option for action in parser()._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+[a-z0-9]", README))
    assert named - known == set()


def test_every_command_can_be_parsed():
    commands = re.findall(r"^tritonpy balance (.*)$", README, re.MULTILINE)
    assert len(commands) == 1
    for command in commands:
        options = make_options(parser().parse_args(shlex.split(command)))
        assert options.backends == ("gpu1:8000:8001", "gpu2:8000:8001")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([], "give one of --backends, --backends-file and --dns"),
        (["--backends", "a:1", "--dns", "b:1"], "give one of"),
        (["--backends", "a"], "'a': expected HOST:PORT"),
        (["--dns", "a"], "'a': expected HOST:PORT"),
        (["--backends", "a:1", "--tls-cert", "c"], "--tls-cert and --tls-key belong together"),
    ],
)
def test_invalid_flags_are_explained(flags, text):
    with pytest.raises(InvalidBackend) as caught:
        make_options(parser().parse_args(flags))
    assert text in str(caught.value)
