"""`tritonpy plugins`: the installed plugins and the names that they provide."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from tritonpy.api.command import Command
from tritonpy.installation import install_command
from tritonpy.plugins import PluginInfo, make_plugin_manager


class PluginsCommand(Command):
    """List installed plugins and the names that they provide."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add `--json`."""
        parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")

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
        return f"no plugins are installed; to install a backend: {install_command('tritonpy-backend-onnx')}"
    rows = [("DISTRIBUTION", "VERSION", "PROVIDES")]
    for plugin in plugins:
        provided = [
            f"{_kind(hook)}: {', '.join(names)}" if names else _kind(hook) for hook, names in plugin.hooks.items()
        ]
        first, *others = provided or ["nothing"]
        rows += [(plugin.distribution, plugin.version, first), *[("", "", other) for other in others]]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip() for row in rows)


def _kind(hook: str) -> str:
    return hook.removeprefix("tritonpy_").replace("_", " ")
