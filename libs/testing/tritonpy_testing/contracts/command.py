"""The contract of subcommands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import ClassVar

from tritonpy import Command
from tritonpy_testing.contracts.plugin import PluginContract


class CommandContract(PluginContract):
    """The contract of `Command`.

    Set `plugin_class`, `arguments`, and the exit `status` for them.
    """

    interface = Command
    hook = "tritonpy_commands"
    arguments: ClassVar[Sequence[str]] = ()
    status: ClassVar[int] = 0

    def parser(self) -> argparse.ArgumentParser:
        """Return a parser configured by the command."""
        parser = argparse.ArgumentParser(prog=f"tritonpy {self.name}", exit_on_error=False)
        self.plugin_class().configure(parser)
        return parser

    def test_its_help_is_in_the_docstring(self) -> None:
        first = (vars(self.plugin_class).get("__doc__") or "").strip().partition("\n")[0]
        assert first, f"{self.plugin_class.__name__} needs a docstring: its first line is the help"

    def test_its_help_can_be_printed(self) -> None:
        assert self.parser().format_help()

    def test_it_runs_and_returns_a_status(self) -> None:
        status = self.plugin_class().run(self.parser().parse_args(list(self.arguments)))
        assert type(status) is int, f"run() returned {status!r}, not an exit status"
        assert status == self.status
