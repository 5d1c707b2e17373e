"""`tritonpy serve`: starts a server from server.yaml, flags, or a single model."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from tritonpy import Command, StartupError
from tritonpy.config import (
    InvalidServerConfig,
    RepositorySettings,
    ServerConfig,
    anchor_paths,
    decode_server_config,
)
from tritonpy.plugins import (
    PLUGIN_SECTIONS,
    PluginManager,
    check_plugin_options,
    describe_options,
    describe_plugin_options,
    make_plugin_manager,
)
from tritonpy.server import configure_logging, log_uncaught_exceptions
from tritonpy_serve.flag import (
    Flag,
    Parse,
    boolean,
    choice,
    integer,
    not_empty,
    not_negative,
    number,
)
from tritonpy_serve.init_process import become_init
from tritonpy_serve.lifecycle import ServerLifecycle
from tritonpy_serve.overlay import (
    BadFlags,
    GivenFlags,
    Origins,
    overlay,
    read_flags,
    with_file_options,
)
from tritonpy_serve.platforms import (
    check_safe_ports,
    with_http_limits,
    with_platform_defaults,
)
from tritonpy_serve.single_model import single_model_repository
from tritonpy_serve.triton_flags import TRITON_FLAGS

_G = "Memory/Device Management"

_LANGUAGE_MODELS = frozenset({".gguf"})  # suffixes of files that are language models
_DEVICE = "--memory-limit takes DEVICE:SIZE, such as cpu:8GiB or 0:20GiB"


def device_size(text: str) -> tuple[str, str, str]:
    """Return ("", device, size text) of `DEVICE:SIZE`. Raises ValueError."""
    device, colon, size = text.partition(":")
    if not (device and colon and size):
        raise ValueError(f"{_DEVICE}. Got {text}")
    return "", device, size


MEMORY_FLAGS = (
    Flag(
        "memory-budget",
        _G,
        not_empty("memory-budget"),
        "Memory limit for all models together, such as 8GiB, on the host and on GPUs. "
        "Lazy models are unloaded to stay below it. "
        "It counts the memory that backends report (ONNX Runtime on the CPU: the file sizes); "
        "the process may use twice as much.",
        path="memory.budget",
        metavar="SIZE",
    ),
    Flag(
        "memory-limit",
        _G,
        device_size,
        "Memory limit for one device: cpu, or the number of a GPU. Repeat it per device.",
        path="memory.devices",
        repeated=True,
        keyed=True,
        metavar="DEVICE:SIZE",
    ),
    Flag(
        "request-memory",
        _G,
        not_empty("request-memory"),
        (
            "Memory limit for requests and unsent responses, such as 2GiB. Default: "
            "a quarter of the process's memory limit."
        ),
        path="request_memory",
        metavar="SIZE",
    ),
    Flag(
        "lazy-model",
        _G,
        not_empty("lazy-model"),
        (
            "Models that load at their first request, as a pattern with * and ?. "
            "Repeat it per pattern."
        ),
        path="memory.lazy",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "pinned-model",
        _G,
        not_empty("pinned-model"),
        "Models that are never unloaded to free memory, as a pattern. Repeat it per pattern.",
        path="memory.pinned",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "first-request",
        _G,
        choice("first-request", "wait", "refuse"),
        (
            "Requests to a lazy model that is not loaded: wait for the model, "
            "or refuse them with a retry time."
        ),
        path="memory.first_request",
    ),
)


LOG = logging.getLogger("tritonpy.cli")

OWN_FLAGS = (
    Flag("host", "Server", not_empty("host"), "Address that all frontends bind to.", path="host"),
    Flag(
        "single-port",
        "Server",
        not_negative,
        "Serve HTTP and gRPC on this port instead of separate ports. 0: any free port.",
        path="single_port",
        metavar="PORT",
    ),
    Flag(
        "frontend-processes",
        "Server",
        not_negative,
        (
            "Number of processes that serve HTTP and gRPC. 0: the process that runs the models "
            "serves them, too."
        ),
        path="frontend_processes",
    ),
    Flag(
        "transport",
        "Server",
        not_empty("transport"),
        "Transport of the frontends: grpcio (for gRPC), or none: each frontend listens itself.",
        path="transport",
    ),
    Flag(
        "model-load-timeout-secs",
        "Model Repository",
        number,
        (
            "Time limit of loading a model. A load that takes longer fails, "
            "and the model's process is killed. 0: no limit."
        ),
        path="control.load_timeout_s",
        metavar="SECONDS",
    ),
    Flag(
        "grpc-model-ready-errors",
        "GRPC",
        boolean,
        (
            "Respond to ModelReady for an unknown model or version with an error, "
            "as newer Triton releases do, instead of ready=false."
        ),
        path="frontends.grpc.model_ready_errors",
    ),
)
FLAGS = (*OWN_FLAGS, *MEMORY_FLAGS, *TRITON_FLAGS)

# The flags of `--help`. `--help-all` shows all flags.
_COMMON = {
    "--config": "configuration file (server.yaml)",
    "--host": "address of all ports; 0.0.0.0 opens them to the network",
    "--single-port": "serve HTTP and gRPC on one port",
    "--frontend-processes": "number of processes that serve HTTP and gRPC; 0: no extra processes",
    "--exit-timeout-secs": "time limit for requests in flight on exit",
    "--memory-budget": "memory limit for all models, such as 8GiB",
    "--log-verbose": "verbose level, 0 for none",
    "--log-format": "default, ISO8601, or json",
    "--log-file": "append log lines to this file",
    "--model-repository": "folder or URL with models; repeatable",
    "--exit-on-error": "false: serve even if a model fails to load",
    "--model-control-mode": "none (load all), explicit (load on request), poll",
    "--load-model": "model to load at start in explicit mode; repeatable",
    "--http-port": "port (default 8000)",
    "--http-use-ssl": "true: encrypt HTTP with the two files below",
    "--http-server-cert": "certificate file, including its chain",
    "--http-server-key": "private key file of the certificate",
    "--grpc-port": "port (default 8001)",
    "--grpc-use-ssl": "true: encrypt gRPC with the two files below",
    "--grpc-server-cert": "certificate file, including its chain",
    "--grpc-server-key": "private key file of the certificate",
    "--metrics-port": "port (default 8002)",
    "--trace-config": "trace setting, such as level=TIMESTAMPS; repeatable",
    "--backend-config": "backend option; repeatable",
    "--cache-config": "response cache, such as local,size=64MiB",
}
_METAVARS: dict[Parse, str] = {boolean: "BOOL", integer: "N"}


def describe_server_options() -> str:
    """Return the server's own keys with type, default and meaning.

    Single keys come first, then sections.
    """
    single, sections = [], []
    for field in msgspec.structs.fields(ServerConfig):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            sections += [f"  {field.name}", *describe_options(msgspec.structs.fields(field.type))]
        elif field.name not in PLUGIN_SECTIONS:
            single.append(field)
    return "\n".join(
        ["Options of the server (keys of server.yaml):", *describe_options(single, "  "), *sections]
    )


def allow_many_open_files() -> None:
    """Raise the soft limit of open files to the hard limit.

    Connections, models and workers each use several files, and 1,024 are too few.
    """
    try:
        import resource
    except ImportError:  # no such limit on this platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS may report no hard limit although the kernel has one
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class ServeCommand(Command):
    """Serve models.

        tritonpy serve model.onnx                     one file, without repository and configuration
        tritonpy serve model.gguf                     a language model, with OpenAI's API
        tritonpy serve --model-repository ./models    a model repository, with Triton's flags
        tritonpy serve --config server.yaml           a configuration file; flags override it

    This help lists the common flags. --help-all lists every flag, every key of server.yaml, and the
    options of plugins.
    """

    common_options = _COMMON

    def appendix(self) -> str:
        """Return the help of server.yaml's keys and of plugins' options."""
        return f"{describe_server_options()}\n\n{plugin_options_help()}"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add every flag in Triton's groups, with its status."""
        parser.usage = "tritonpy serve [MODEL] [--config FILE] [--flag=value ...]"
        parser.add_argument(
            "model",
            nargs="?",
            type=Path,
            help="a model to serve: a file, a folder with versions, or a repository",
        )
        parser.add_argument(
            "--model-name",
            default="",
            metavar="NAME",
            help="name of that model (default: its file)",
        )
        parser.add_argument(
            "--config", type=Path, metavar="FILE", help="configuration file (server.yaml)"
        )
        groups: dict[str, argparse._ArgumentGroup] = {}
        for flag in FLAGS:
            if flag.group not in groups:
                groups[flag.group] = parser.add_argument_group(flag.group)
            help_text = f"{flag.help} [{flag.meaning()}]".replace("%", "%%")
            if flag.bare:
                groups[flag.group].add_argument(
                    f"--{flag.name}",
                    dest=flag.name,
                    action="append_const",
                    const="true",
                    help=help_text,
                )
            else:
                metavar = _METAVARS.get(flag.parse, flag.metavar)
                groups[flag.group].add_argument(
                    f"--{flag.name}",
                    dest=flag.name,
                    action="append",
                    metavar=metavar,
                    help=help_text,
                )

    def run(self, arguments: argparse.Namespace) -> int:
        """Serve until a signal arrives and return the exit status.

        Bad flags are printed as Triton words them. Raises StartupError if the server cannot start.
        """
        try:
            return self._run(arguments)
        except BadFlags as error:
            print(error, file=sys.stderr)
            return 1

    def _run(self, arguments: argparse.Namespace) -> int:
        given = read_flags(
            FLAGS,
            {name: texts for name, texts in vars(arguments).items() if isinstance(texts, list)},
        )
        raw, origins, source = _read_file(arguments.config)
        become_init()
        allow_many_open_files()
        # Until the event loop handles signals, SIGTERM acts like Ctrl-C, so that temporary files
        # are removed.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return _configure_and_serve(arguments, raw, given, origins)
        except InvalidServerConfig as error:
            raise error.located(origins.locate, source) from error
        finally:
            signal.signal(signal.SIGTERM, before)


def _read_file(file: Path | None) -> tuple[object, Origins, str]:
    if file is None:
        return None, Origins(), "the command line"
    # Imported here, since PyYAML is only needed for a file.
    from tritonpy.config import read_server_yaml

    raw, positions = read_server_yaml(file)
    return anchor_paths(raw, file.parent), Origins(positions), str(file)


def _configure_and_serve(
    arguments: argparse.Namespace, raw: object, given: GivenFlags, origins: Origins
) -> int:
    raw = with_platform_defaults(raw, given, os.environ, has_model=arguments.model is not None)
    config = with_http_limits(build_config(raw, given, origins), given)
    manager = make_plugin_manager(disable=config.plugins.disable)
    with ExitStack() as stack:
        config = _with_model(config, arguments, given, manager, stack)
        config = bind_metrics_like_http(config, given, manager)
        check_safe_ports(config, manager)
        check_plugin_options(config, manager)
        return _serve(config, manager, given, stack)


def build_config(raw: object, given: GivenFlags, origins: Origins) -> ServerConfig:
    """Return the configuration of the file's content `raw` with the flags applied. Fills `origins`.

    Raises BadFlags or InvalidServerConfig.
    """
    merged = with_file_options(overlay(raw, given, origins), raw, origins)
    control = merged.get("control") if isinstance(merged, dict) else None
    mode = control.get("mode") if isinstance(control, dict) else None
    if "load-model" in given.names() and mode != "explicit":
        raise BadFlags(
            [
                (
                    "Error: Use of '--load-model' requires setting "
                    "'--model-control-mode=explicit' as well."
                )
            ]
        )
    if given.names() >= {"response-cache-byte-size", "cache-config"}:
        text = (
            "Error: Incompatible flags --response-cache-byte-size and --cache-config both "
            "provided. Please provide one or the other."
        )
        raise BadFlags([text])
    return decode_server_config(merged)


def bind_metrics_like_http(
    config: ServerConfig, given: GivenFlags, manager: PluginManager
) -> ServerConfig:
    """Bind metrics to --http-address unless they have their own address, as Triton does."""
    names, frontends = given.names(), config.enabled_frontends(manager.table("tritonpy_frontends"))
    metrics, http = frontends.get("metrics"), frontends.get("http", {})
    if (
        "http-address" not in names
        or "metrics-address" in names
        or metrics is None
        or "host" in metrics
    ):
        return config
    if str(http.get("host", "")).startswith("unix:"):  # frontends cannot share a Unix socket
        return config
    changed = {**config.frontends, "metrics": {**metrics, "host": http.get("host", "")}}
    return msgspec.structs.replace(config, frontends=changed)


def with_chat(config: ServerConfig, manager: PluginManager) -> ServerConfig:
    """Enable the OpenAI API, which people use for language models, if its plugin is installed."""
    if "openai" in config.frontends or "openai" not in manager.table("tritonpy_frontends"):
        return config
    return msgspec.structs.replace(config, frontends={**config.frontends, "openai": {}})


def _with_model(
    config: ServerConfig,
    arguments: argparse.Namespace,
    given: GivenFlags,
    manager: PluginManager,
    stack: ExitStack,
) -> ServerConfig:
    model: Path | None = arguments.model
    has_repository = given.names() & {"model-repository", "model-store"}
    if model is not None and has_repository:
        raise StartupError(f"use either a model ({model}) or --model-repository, not both")
    if model is not None:
        repository = single_model_repository(model, manager, arguments.model_name)
        folder = stack.enter_context(repository)
        config = msgspec.structs.replace(config, repositories=[RepositorySettings(str(folder))])
        return with_chat(config, manager) if model.suffix in _LANGUAGE_MODELS else config
    is_default = config.repositories == ServerConfig().repositories
    is_chosen = arguments.config is not None or has_repository or not is_default
    if not is_chosen and not Path("models").is_dir():
        raise StartupError(
            "nothing to serve: the folder ./models does not exist. Use --model-repository DIR, "
            "a model file, or --config FILE"
        )
    return config


def _serve(
    config: ServerConfig, manager: PluginManager, given: GivenFlags, stack: ExitStack
) -> int:
    configure_logging(config.logging)
    log_uncaught_exceptions()
    for warning in given.warnings:
        LOG.warning("%s", warning)
    for note in given.notes:
        LOG.info(note)
    if "strict-model-config" in given.names():
        LOG.warning(
            "'--strict-model-config' has been deprecated! Please use "
            "'--disable-auto-complete-config' instead."
        )
    # Imported here, so that help and errors do not load the engine.
    from tritonpy.server import build

    ServerLifecycle(build(config, manager), config.exit_timeout_s, stack.close).run()
    return 0


def plugin_options_help() -> str:
    """Return the help of plugins' options.

    A broken plugin is named and does not prevent the help.
    """
    try:
        return describe_plugin_options(make_plugin_manager())
    except StartupError as error:
        return f"Options of plugins are not available: {error}"
