from __future__ import annotations

import re

import pytest

import tritonpy_auth_api_keys
from tritonpy import StartupError
from tritonpy.auth import Verb
from tritonpy.cli import main
from tritonpy_auth_api_keys.command import ApiKeyCommand
from tritonpy_auth_api_keys.key import matches_hash
from tritonpy_auth_api_keys.key_file import parse_key_file
from tritonpy_testing import CommandContract


class TestContract(CommandContract):
    plugin_class = ApiKeyCommand
    plugin = tritonpy_auth_api_keys
    name = "api-key"
    arguments = ("new", "--name", "ci")


def made(capsys, *arguments):
    assert main(["api-key", "new", *arguments]) == 0
    return capsys.readouterr()


def test_the_key_and_its_entry_are_printed(capsys):
    printed = made(
        capsys, "--name", 'the "ci"', "--infer", "digits*", "--infer", "other", "--read", "*", "--expires", "2030-01-01T00:00:00Z"
    )  # fmt: skip
    (text,) = re.findall(r"tpy_\S+", printed.err)
    ((identity, known),) = parse_key_file(printed.out).items()
    assert text not in printed.out
    assert identity in text
    assert matches_hash(text, known.hash)
    assert known.principal.name == f'the "ci" ({identity})'
    assert known.principal.rights.allow(Verb.INFER, "other")
    assert known.expires_s == 1893456000


@pytest.mark.parametrize(
    "arguments",
    [
        ["--name", ""],
        ["--name", "x" * 121],
        ["--name", "x", "--infer", ""],
        ["--name", "x", "--expires", "soon"],
        ["--name", "x", "--expires", "2030-01-01T00:00:00"],
        ["--infer", "*"],
    ],
)
def test_invalid_arguments_are_rejected(arguments, capsys):
    assert main(["api-key", "new", *arguments]) == 1
    assert "error: " in capsys.readouterr().err


def test_a_time_without_a_zone_is_rejected_with_an_example():
    with pytest.raises(StartupError, match="such as 2030-01-01T00:00:00Z"):
        TestContract().plugin_class().run(
            TestContract()
            .parser()
            .parse_args(["new", "--name", "x", "--expires", "2030-01-01T00:00:00"])
        )
