"""`tritonpy COMMAND …`: finds and runs the command, and prints start-up errors."""

from __future__ import annotations

import argparse
import copy
import difflib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import tritonpy
from tritonpy.api.command import Command
from tritonpy.installation import install_command
from tritonpy.plugins import PluginInfo, Registration, make_plugin_manager
from tritonpy.plugins.manager import package_of
from tritonpy.version import is_compiled
from tritonpy_types.errors import StartupError


class UsageError(StartupError):
    """The command line is invalid."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError with the closest flag where argparse exits with status 2.

    `appendix()` returns the last part of the complete help. `common` maps options to short help
    texts: with it, `--help` shows only these and the positional arguments, and `--help-all` shows
    everything.
    """

    def __init__(
        self,
        prog: str,
        description: str = "",
        appendix: Callable[[], str] = str,
        common: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            prog=prog, description=description, allow_abbrev=False, formatter_class=_formatter
        )
        self._appendix = appendix
        self._common = common or {}
        if self._common:
            self.add_argument("--help-all", action=_HelpAll, help="show every option and exit")

    def format_help(self) -> str:
        """Return the output of `--help`."""
        return self._format_common() if self._common else self.format_help_all()

    def format_help_all(self) -> str:
        """Return the help of every option, with the appendix."""
        return f"{super().format_help()}\n{self._appendix()}".rstrip() + "\n"

    def _format_common(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            for action in group._group_actions:
                texts = [
                    self._common[option]
                    for option in action.option_strings
                    if option in self._common
                ]
                if texts:
                    formatter.add_argument(_with_help(action, texts[0]))
                elif not action.option_strings or isinstance(
                    action, (argparse._HelpAction, _HelpAll)
                ):
                    formatter.add_argument(action)
            formatter.end_section()
        return formatter.format_help()

    def parse_args(  # type: ignore[override]
        self, args: list[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """Return the arguments. Raises UsageError that names every unknown flag and argument."""
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            raise UsageError("\n".join(self._unknown(text) for text in unknown))
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _unknown(self, text: str) -> str:
        name = text.partition("=")[0]
        if not name.startswith("-"):
            return f"Unexpected argument: {text} (see {self.prog} --help)"
        flags = [option for action in self._actions for option in action.option_strings]
        near = difflib.get_close_matches(name.replace("_", "-"), flags, 1)
        where = "--help-all" if self._common else "--help"
        return f"unrecognized option '{name}'" + (
            f"; did you mean '{near[0]}'?" if near else f" (see {self.prog} {where})"
        )


class _HelpAll(argparse.Action):
    """The option that prints the help of every option and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(
            option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=help
        )

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: Any) -> None:
        if isinstance(parser, CommandParser):
            sys.stdout.write(parser.format_help_all())
        parser.exit()


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=32)


def _with_help(action: argparse.Action, text: str) -> argparse.Action:
    changed = copy.copy(action)
    changed.help = text.replace("%", "%%")
    return changed


class PluginsCommand(Command):
    """List installed plugins and the names that they provide."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add `--json`."""
        parser.add_argument(
            "--json", action="store_true", help="print a JSON list instead of a table"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the list."""
        plugins = make_plugin_manager().plugins()
        print(as_json(plugins) if arguments.json else as_table(plugins))
        return 0


def as_json(plugins: Sequence[PluginInfo]) -> str:
    """Return a JSON list with one object per plugin."""
    return json.dumps(
        [
            {
                "name": each.name,
                "distribution": each.distribution,
                "version": each.version,
                "provides": dict(each.hooks),
            }
            for each in plugins
        ],
        indent=2,
    )


def as_table(plugins: Sequence[PluginInfo]) -> str:
    """Return a table with distribution, version, and one line per provided kind."""
    if not plugins:
        return (
            "no plugins are installed; to install a backend: "
            f"{install_command('tritonpy-backend-onnx')}"
        )
    rows = [("DISTRIBUTION", "VERSION", "PROVIDES")]
    for plugin in plugins:
        provided = [
            f"{_kind(hook)}: {', '.join(names)}" if names else _kind(hook)
            for hook, names in plugin.hooks.items()
        ]
        first, *others = provided or ["nothing"]
        rows += [
            (plugin.distribution, plugin.version, first),
            *[("", "", other) for other in others],
        ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip() for row in rows
    )


def _kind(hook: str) -> str:
    return hook.removeprefix("tritonpy_").replace("_", " ")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: of the process) and return the exit status, 0 or 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except StartupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # during the start of a command; a running server drains instead
        return 130
    except SystemExit as stop:  # argparse raises it after --help
        return int(stop.code or 0)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(_overview())
        return 0 if arguments else 1
    if arguments[0] in {"-V", "--version"}:
        path = "compiled" if is_compiled() else "interpreted"
        print(f"tritonpy {tritonpy.__version__} (request path: {path})")
        return 0
    name, *rest = arguments
    command = find_command(name)()
    parser = CommandParser(
        f"tritonpy {name}", inspect.getdoc(command) or "", command.appendix, command.common_options
    )
    command.configure(parser)
    try:
        parsed = parser.parse_args(rest)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return command.usage_status
    return command.run(parsed)


def find_command(name: str) -> type[Command]:
    """Return the class of a command.

    Raises UsageError with the closest name.
    """
    # A plugin that is named like its command is loaded alone: the command loads the others as
    # configured.
    own = make_plugin_manager(only=name).table("tritonpy_commands")
    if name in own:
        return _loaded(own[name])
    commands = make_plugin_manager().table("tritonpy_commands")
    if name in commands:
        return _loaded(commands[name])
    package = package_of("tritonpy_commands", name)
    if package is not None:
        raise UsageError(f"the command '{name}' is not installed: {install_command(package)}")
    near = difflib.get_close_matches(name, commands, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"available commands: {', '.join(commands)}"
    raise UsageError(f"unknown command '{name}'; {hint}")


def _commands() -> dict[str, type[Command]]:
    table = make_plugin_manager().table("tritonpy_commands")
    names = sorted(table, key=lambda name: (name != "serve", name))
    return {name: _loaded(table[name]) for name in names}


def _loaded(entry: Registration) -> type[Command]:
    command: type[Command] = entry.load()
    return command


def _overview() -> str:
    commands = {
        name: (inspect.getdoc(kind) or "").partition("\n")[0] for name, kind in _commands().items()
    }
    width = max(map(len, commands))
    lines = [
        "usage: tritonpy COMMAND …",
        "",
        "Serve trained models as Triton does.",
        "",
        "commands:",
    ]
    lines += [f"  {name:<{width}}  {text}" for name, text in commands.items()]
    return "\n".join(
        [*lines, "", "Run tritonpy COMMAND --help for details, tritonpy --version for the version."]
    )
