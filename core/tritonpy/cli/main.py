"""`tritonpy COMMAND …`: finds and runs the command, and prints start-up errors."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Mapping, Sequence

import tritonpy
from tritonpy.api.command import Command
from tritonpy.cli.overlay import BadFlags
from tritonpy.cli.parser import CommandParser, UsageError
from tritonpy.cli.plugins_command import PluginsCommand
from tritonpy.cli.serve import ServeCommand, options_help
from tritonpy.errors import PluginError, StartupError
from tritonpy.installation import install_command
from tritonpy.plugins import make_plugin_manager
from tritonpy.plugins.known_packages import package_of

OWN_COMMANDS: Mapping[str, type[Command]] = {"serve": ServeCommand, "plugins": PluginsCommand}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: of the process) and return the exit status, 0 or 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except StartupError as error:
        print(error if isinstance(error, BadFlags) else f"error: {error}", file=sys.stderr)
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
        print(f"tritonpy {tritonpy.__version__}")
        return 0
    name, *rest = arguments
    command = find_command(name)()
    appendix = options_help if isinstance(command, ServeCommand) else str
    parser = CommandParser(f"tritonpy {name}", inspect.getdoc(command) or "", appendix, command.common_options)
    command.configure(parser)
    try:
        parsed = parser.parse_args(rest)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return command.usage_status
    return command.run(parsed)


def find_command(name: str) -> type[Command]:
    """Return the class of a command of tritonpy or a plugin.

    Raises UsageError with the closest name.
    """
    if name in OWN_COMMANDS:
        return OWN_COMMANDS[name]  # does not load plugins, which the command loads as configured
    commands = _commands()
    if name in commands:
        return commands[name]
    package = package_of("tritonpy_commands", name)
    if package is not None:
        raise UsageError(f"the command '{name}' is not installed: {install_command(package)}")
    near = difflib.get_close_matches(name, commands, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"available commands: {', '.join(commands)}"
    raise UsageError(f"unknown command '{name}'; {hint}")


def _commands() -> dict[str, type[Command]]:
    commands = dict(OWN_COMMANDS)
    for name, entry in make_plugin_manager().table("tritonpy_commands").items():
        if name in commands:
            raise PluginError(
                f"{entry.owner} registers the command '{name}', which tritonpy itself has; rename or uninstall it"
            )
        commands[name] = entry.load()
    return commands


def _overview() -> str:
    commands = {name: (inspect.getdoc(kind) or "").partition("\n")[0] for name, kind in _commands().items()}
    width = max(map(len, commands))
    lines = ["usage: tritonpy COMMAND …", "", "Serve trained models as Triton does.", "", "commands:"]
    lines += [f"  {name:<{width}}  {text}" for name, text in commands.items()]
    return "\n".join([*lines, "", "Run tritonpy COMMAND --help for details, tritonpy --version for the version."])
