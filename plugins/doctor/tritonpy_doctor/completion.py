"""The command `tritonpy completion`: shell completion for every installed command."""

from __future__ import annotations

import argparse
import inspect
from typing import ClassVar

from tritonpy import Command
from tritonpy.plugins import PluginManager, make_plugin_manager

SHELLS = ("bash", "zsh", "fish")
_FILES = frozenset({"FILE", "PATH", "FOLDER", "DIR"})


class CompletionCommand(Command):
    """Print the completion script of a shell.

        eval "$(tritonpy completion bash)"              in ~/.bashrc
        tritonpy completion zsh > ~/.zfunc/_tritonpy    in a folder of $fpath
        tritonpy completion fish > ~/.config/fish/completions/tritonpy.fish

    Print it again after you install or remove a plugin. The exit status is 0, and 2 for an invalid
    command line.
    """

    usage_status: ClassVar[int] = 2

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the shell."""
        parser.add_argument("shell", choices=SHELLS)

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the script."""
        import shtab  # needed only here: the overview loads all commands

        print(shtab.complete(all_commands(make_plugin_manager()), arguments.shell))
        return 0


def all_commands(manager: PluginManager) -> argparse.ArgumentParser:
    """Return a parser with a subparser per command of the installed plugins."""
    import shtab

    parser = argparse.ArgumentParser(prog="tritonpy")
    parser.add_argument("--version", action="store_true", help="print the version")
    subparsers = parser.add_subparsers(dest="command")
    for name, entry in sorted(manager.table("tritonpy_commands").items()):
        command: Command = entry.load()()
        summary = (inspect.getdoc(command) or "").partition("\n")[0]
        subparser = subparsers.add_parser(name, help=summary)
        command.configure(subparser)
        for action in subparser._actions:
            names = {action.metavar} if isinstance(action.metavar, str) else set()
            if names & _FILES or action.dest in {"paths", "model"}:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return parser
