"""`tritonpy serve`: from a file, flags or a single model to a running server."""

from __future__ import annotations

import argparse
import logging
import signal
from contextlib import ExitStack
from pathlib import Path

import msgspec

from tritonpy.api.command import Command
from tritonpy.cli.flag import Flag, Parse, boolean, integer, not_empty, not_negative, number
from tritonpy.cli.lifecycle import Life
from tritonpy.cli.memory_flags import MEMORY_FLAGS
from tritonpy.cli.open_files import allow_many_open_files
from tritonpy.cli.overlay import BadFlags, GivenFlags, Origins, overlay, read_flags, with_written_options
from tritonpy.cli.plugin_options import check_plugin_options, describe_plugin_options
from tritonpy.cli.single_model import single_model_repository
from tritonpy.cli.triton_flags import TRITON_FLAGS
from tritonpy.config.server import InvalidServerConfig, ServerConfig, decode_server_config
from tritonpy.config.server.relative_paths import anchored
from tritonpy.config.server.server_config import RepositorySettings
from tritonpy.errors import StartupError
from tritonpy.logs import configure_logging, log_uncaught_exceptions
from tritonpy.plugins import PluginManager, make_plugin_manager

LOG = logging.getLogger("tritonpy.cli")

OWN_FLAGS = (
    Flag("host", "Server", not_empty("host"), "Address that every frontend binds to.", path="host"),
    Flag(
        "single-port",
        "Server",
        not_negative,
        "Serve HTTP and gRPC on this port instead of one port each; 0 picks a free one.",
        path="single_port",
        metavar="PORT",
    ),
    Flag(
        "frontend-processes",
        "Server",
        not_negative,
        "Processes that serve HTTP and gRPC in front of the one that runs models; 0: that one does.",
        path="frontend_processes",
    ),
    Flag(
        "transport",
        "Server",
        not_empty("transport"),
        "What carries the frontends: grpcio for gRPC, or none where each frontend listens by itself.",
        path="transport",
    ),
    Flag(
        "model-load-timeout-secs",
        "Model Repository",
        number,
        "A load that takes longer fails; the process of a model that has one is killed. 0: no limit.",
        path="control.load_timeout_s",
        metavar="SECONDS",
    ),
    Flag(
        "grpc-model-ready-errors",
        "GRPC",
        boolean,
        "Answer ModelReady of an unknown model or version with an error, as newer Tritons do, instead of ready=false.",
        path="frontends.grpc.model_ready_errors",
    ),
)
FLAGS = (*OWN_FLAGS, *MEMORY_FLAGS, *TRITON_FLAGS)

# What `--help` shows of the flags above; `--help-all` shows all of them.
_COMMON = {
    "--config": "read server.yaml from here",
    "--host": "address of every port: 0.0.0.0 opens them to the network",
    "--single-port": "serve HTTP and gRPC on one port",
    "--frontend-processes": "processes that serve HTTP and gRPC; 0: none of their own",
    "--exit-timeout-secs": "how long live requests may take on exit",
    "--memory-budget": "most memory of all models, such as 8GiB",
    "--log-verbose": "verbose level, 0 for none",
    "--log-format": "default, ISO8601, or json",
    "--log-file": "append log lines to this file",
    "--model-repository": "folder or URL of models; repeatable",
    "--exit-on-error": "false: serve although a model failed to load",
    "--model-control-mode": "none (load all), explicit (on request), poll",
    "--load-model": "model to load at start in mode explicit; repeatable",
    "--http-port": "port, 8000 if not given",
    "--http-use-ssl": "true: encrypt HTTP, with the two files below",
    "--http-server-cert": "certificate file, with its chain",
    "--http-server-key": "key file of the certificate",
    "--grpc-port": "port, 8001 if not given",
    "--grpc-use-ssl": "true: encrypt gRPC, with the two files below",
    "--grpc-server-cert": "certificate file, with its chain",
    "--grpc-server-key": "key file of the certificate",
    "--metrics-port": "port, 8002 if not given",
    "--trace-config": "tracing, such as level=TIMESTAMPS; repeatable",
    "--backend-config": "option of a backend; repeatable",
    "--cache-config": "response cache, such as local,size=64MiB",
}
_METAVARS: dict[Parse, str] = {boolean: "BOOL", integer: "N"}


class ServeCommand(Command):
    """Serve models.

    tritonpy serve model.onnx                     one file, no repository and no configuration
    tritonpy serve --model-repository ./models    a model repository, with Triton's flags
    tritonpy serve --config server.yaml           everything in one file; a flag wins over it

    This help lists the common flags. --help-all lists every flag, every key of server.yaml, and the options of plugins.
    """

    common_options = _COMMON

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add every flag, in Triton's groups, with what becomes of it."""
        parser.usage = "tritonpy serve [MODEL] [--config FILE] [--flag=value ...]"
        parser.add_argument("model", nargs="?", type=Path, help="a model file to serve by itself")
        parser.add_argument("--config", type=Path, metavar="FILE", help="read server.yaml from here")
        groups: dict[str, argparse._ArgumentGroup] = {}
        for flag in FLAGS:
            if flag.group not in groups:
                groups[flag.group] = parser.add_argument_group(flag.group)
            help_text = f"{flag.help} [{flag.meaning()}]".replace("%", "%%")
            if flag.bare:
                groups[flag.group].add_argument(
                    f"--{flag.name}", dest=flag.name, action="append_const", const="true", help=help_text
                )
            else:
                metavar = _METAVARS.get(flag.parse, flag.metavar)
                groups[flag.group].add_argument(
                    f"--{flag.name}", dest=flag.name, action="append", metavar=metavar, help=help_text
                )

    def run(self, arguments: argparse.Namespace) -> int:
        """Serve until a signal comes; return the exit status. Raises StartupError when the server cannot start."""
        given = read_flags(FLAGS, {name: texts for name, texts in vars(arguments).items() if isinstance(texts, list)})
        raw, origins, source = _read_file(arguments.config)
        allow_many_open_files()
        # until the event loop takes signals: end as on Ctrl-C, so that what was made is cleaned up
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return _compose_and_serve(arguments, raw, given, origins)
        except InvalidServerConfig as error:
            raise error.located(origins.locate, source) from error
        finally:
            signal.signal(signal.SIGTERM, before)


def _read_file(file: Path | None) -> tuple[object, Origins, str]:
    if file is None:
        return None, Origins(), "the command line"
    # PyYAML is imported by those who have a file
    from tritonpy.config.server.server_yaml import read_server_yaml

    raw, positions = read_server_yaml(file)
    return anchored(raw, file.parent), Origins(positions), str(file)


def _compose_and_serve(arguments: argparse.Namespace, raw: object, given: GivenFlags, origins: Origins) -> int:
    config = compose(raw, given, origins)
    manager = make_plugin_manager(disable=config.plugins.disable)
    with ExitStack() as stack:
        config = _with_model(config, arguments, given, manager, stack)
        config = metrics_follow_http(config, given, manager)
        check_plugin_options(config, manager)
        return _serve(config, manager, given, stack)


def compose(raw: object, given: GivenFlags, origins: Origins) -> ServerConfig:
    """Return the configuration of the file's content `raw` with the flags over it, and fill `origins`.

    Raises BadFlags or InvalidServerConfig.
    """
    merged = with_written_options(overlay(raw, given, origins), raw, origins)
    control = merged.get("control") if isinstance(merged, dict) else None
    mode = control.get("mode") if isinstance(control, dict) else None
    if "load-model" in given.names() and mode != "explicit":
        raise BadFlags(["Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."])
    if given.names() >= {"response-cache-byte-size", "cache-config"}:
        text = "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or the other."
        raise BadFlags([text])
    return decode_server_config(merged)


def metrics_follow_http(config: ServerConfig, given: GivenFlags, manager: PluginManager) -> ServerConfig:
    """Bind metrics where --http-address says, unless they have an address of their own, as Triton does."""
    names, frontends = given.names(), config.enabled_frontends(manager.table("tritonpy_frontends"))
    metrics, http = frontends.get("metrics"), frontends.get("http", {})
    if "http-address" not in names or "metrics-address" in names or metrics is None or "host" in metrics:
        return config
    if str(http.get("host", "")).startswith("unix:"):  # a socket is one frontend's
        return config
    changed = {**config.frontends, "metrics": {**metrics, "host": http.get("host", "")}}
    return msgspec.structs.replace(config, frontends=changed)


def _with_model(
    config: ServerConfig, arguments: argparse.Namespace, given: GivenFlags, manager: PluginManager, stack: ExitStack
) -> ServerConfig:
    model: Path | None = arguments.model
    asked = given.names() & {"model-repository", "model-store"}
    if model is not None and asked:
        raise StartupError(f"give either a model ({model}) or --model-repository, not both")
    if model is not None:
        folder = stack.enter_context(single_model_repository(model, manager))
        return msgspec.structs.replace(config, repositories=[RepositorySettings(str(folder))])
    if arguments.config is None and not asked and not Path("models").is_dir():
        raise StartupError(
            "nothing to serve: there is no folder ./models here. Give --model-repository DIR, a model file, or --config FILE"
        )
    return config


def _serve(config: ServerConfig, manager: PluginManager, given: GivenFlags, stack: ExitStack) -> int:
    configure_logging(config.logging)
    log_uncaught_exceptions()
    for warning in given.warnings:
        LOG.warning("%s", warning)
    for note in given.notes:
        LOG.info(note)
    if "strict-model-config" in given.names():
        LOG.warning("'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.")
    # the engine is needed only here: help and errors come without it
    from tritonpy.server import build

    Life(build(config, manager), config.exit_timeout_s, stack.close).run()
    return 0


def plugin_options_help() -> str:
    """Return what the help says of plugins' options; a broken plugin is named, it does not hide the help."""
    try:
        return describe_plugin_options(make_plugin_manager())
    except StartupError as error:
        return f"The options of plugins cannot be shown: {error}"


def options_help() -> str:
    """Return what the help says of server.yaml."""
    from tritonpy.cli.own_options import describe_own_options

    return f"{describe_own_options()}\n\n{plugin_options_help()}"
