from __future__ import annotations

import pytest

from tritonpy import Command, hookimpl
from tritonpy_testing import CommandContract


class Half(Command):
    """Halves a number."""

    def configure(self, parser):
        parser.add_argument("number", type=int, help="what to halve (100 %% of it)")

    def run(self, arguments):
        return arguments.number // 2


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_commands():
        return {"half": Half}


class HalfContract(CommandContract):
    plugin_class = Half
    arguments = ("6",)
    status = 3


class TestHalf(HalfContract):
    plugin = Plugin
    name = "half"


class Undocumented(Half):
    pass


class BadHelp(Half):
    """Cannot show its help."""

    def configure(self, parser):
        parser.add_argument("number", type=int, help="100 %d of it")


class Statusless(Half):
    """Returns nothing."""

    def run(self, arguments):
        return None


class Failing(Half):
    """Always fails."""

    def run(self, arguments):
        return 1


BROKEN = {
    Undocumented: "test_its_help_is_in_the_docstring",
    BadHelp: "test_its_help_can_be_printed",
    Statusless: "test_it_runs_and_returns_a_status",
    Failing: "test_it_runs_and_returns_a_status",
}


@pytest.mark.parametrize("command", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_command_fails(failures, command):
    contract = type("Broken", (HalfContract,), {"plugin_class": command})
    assert BROKEN[command] in failures(contract)
