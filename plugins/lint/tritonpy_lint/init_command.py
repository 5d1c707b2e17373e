"""The command `tritonpy init`: model repositories, server.yaml and plugin packages."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import ClassVar

from tritonpy import Command, StartupError
from tritonpy.config import normalize, read_config_text
from tritonpy.plugins import make_plugin_manager
from tritonpy_config.model_text import config_to_text
from tritonpy_lint.model_scaffold import (
    ModelScaffold,
    client_snippet,
    init_model,
    init_python_model,
)
from tritonpy_lint.plugin_scaffold import KINDS, PluginScaffold, init_plugin

FAILED, USAGE = 1, 2
_SERVER = """# The configuration of tritonpy serve. 'tritonpy explain KEY' describes every key.
repositories:
  - url: {repository}

# 127.0.0.1: this machine only. 0.0.0.0: the network; see the page on access before.
host: 127.0.0.1

frontends:
  http:
    port: 8000
  grpc:
    port: 8001
  metrics:
    port: 8002

# none: load every model at start. poll: also follow changes. explicit: load on request.
control:
  mode: none
"""


class InitCommand(Command):
    """Create a model repository from model files, a server.yaml, or a plugin package.

        tritonpy init model.onnx --into models      a model with config, sample request and test
        tritonpy init --python doubler              a Python model to change
        tritonpy init --server                      a server.yaml with comments
        tritonpy init --plugin cache my_cache       a plugin package whose contract test passes
        tritonpy init --from-config config.pbtxt    print the configuration with all defaults

    Nothing is overwritten. The exit status is 0, 1 if something cannot be created, and 2 for an
    invalid command line.
    """

    usage_status: ClassVar[int] = USAGE

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add("files", nargs="*", type=Path, metavar="FILE", help="model files or folders")
        add("--into", type=Path, default=Path("models"), metavar="FOLDER", help="default: models")
        add("--name", default="", help="the name of the model (default: that of the file)")
        add("--labels", type=Path, metavar="FILE", help="labels (default: labels.txt beside it)")
        add("--link", action="store_true", help="link the files instead of copying them")
        add("--python", metavar="NAME", help="create a Python model")
        add("--server", action="store_true", help="write server.yaml into the current folder")
        add("--plugin", nargs=2, metavar=("KIND", "NAME"), help=f"kinds: {', '.join(KINDS)}")
        add("--from-config", type=Path, metavar="FILE", help="print a config.pbtxt normalized")
        add("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        """Create what was requested and return the exit status."""
        wanted = (arguments.files, arguments.python, arguments.server, arguments.plugin)
        if not any(wanted) and arguments.from_config is None:
            print("error: give a model file, or see tritonpy init --help", file=sys.stderr)
            return USAGE
        if arguments.name and len(arguments.files) > 1:
            print("error: --name is for one model file", file=sys.stderr)
            return USAGE
        try:
            return self._run(arguments)
        except StartupError as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED

    def _run(self, arguments: argparse.Namespace) -> int:
        if arguments.from_config is not None:
            print(_normalized(arguments.from_config), end="")
            return 0
        manager = make_plugin_manager()
        models = [
            init_model(
                file, arguments.into, manager, arguments.name, arguments.labels, arguments.link
            )
            for file in arguments.files
        ]
        if arguments.python:
            models.append(init_python_model(arguments.python, arguments.into, manager))
        plugin = None
        if arguments.plugin:
            kind, name = arguments.plugin
            plugin = init_plugin(kind, name, Path.cwd())
        server = _write_server(arguments.into) if arguments.server else None
        if arguments.json:
            data = {
                "models": [dataclasses.asdict(model) for model in models],
                "plugin": dataclasses.asdict(plugin) if plugin is not None else None,
                "server": str(server) if server is not None else None,
            }
            print(json.dumps(data, indent=2))
        else:
            _report(models, plugin, server, arguments.into)
        return 0


def _normalized(file: Path) -> str:
    try:
        parsed = read_config_text(file.read_bytes())
    except OSError as error:
        raise StartupError(f"cannot read '{file}': {error.strerror}") from error
    if parsed.problems:
        raise StartupError(f"'{file}' has errors: run tritonpy lint '{file}'")
    return config_to_text(normalize(parsed.config))


def _write_server(repository: Path) -> Path:
    path = Path("server.yaml")
    if path.exists():
        raise StartupError("'server.yaml' exists: nothing is overwritten")
    path.write_text(_SERVER.format(repository=repository), encoding="utf-8")
    return path


def _report(
    models: list[ModelScaffold], plugin: PluginScaffold | None, server: Path | None, into: Path
) -> None:
    for model in models:
        print(f"{into / model.name} (backend {model.backend}): {', '.join(model.files)}")
        for note in model.notes:
            print(f"  note: {note}")
    if plugin is not None:
        print(f"{plugin.folder}: {', '.join(plugin.files)}")
        print(f"\nNext:\n  pip install -e {plugin.folder}\n  pytest {plugin.folder}")
    if server is not None:
        print(f"{server}")
    if models:
        print("\nNext:")
        print(f"  tritonpy lint {into}")
        print(f"  tritonpy serve --model-repository {into}")
        print(f"  {client_snippet(into / models[0].name)}")
