"""Defaults that hosting platforms set in the environment: SageMaker, Vertex AI and Azure ML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tritonpy import Options
from tritonpy.config import ServerConfig
from tritonpy.plugins import PluginManager
from tritonpy_serve.overlay import BadFlags, GivenFlags

_PLATFORMS = {"sagemaker": "allow-sagemaker", "vertex": "allow-vertex-ai"}
_REPOSITORY_FLAGS = frozenset({"model-repository", "model-store"})
# Triton's names of the endpoints, in its error about their ports.
_TITLES = {"http": "HTTP", "grpc": "GRPC", "vertex": "Vertex AI"}
_SHARED_WITH_HTTP = frozenset({"http-restricted-api", "http-max-input-size"})


def with_platform_defaults(
    raw: object, given: GivenFlags, environment: Mapping[str, str], *, has_model: bool = False
) -> object:
    """Return the content of server.yaml with the defaults of the platform.

    - `AIP_MODE=PREDICTION` enables Vertex AI and disables HTTP and gRPC.
    - `AIP_STORAGE_URI` or `AZUREML_MODEL_DIR` is the repository if no other is given and there is
      no single model (`has_model`).
    - Flags of a platform alone do not enable it, as in Triton.
    """
    if not (raw is None or isinstance(raw, Mapping)):
        return raw  # decoding reports it
    merged: dict[str, Any] = dict(raw or {})
    frontends = merged.get("frontends") or {}
    if not isinstance(frontends, Mapping):
        return raw
    defaults: dict[str, bool] = {}
    if environment.get("AIP_MODE") == "PREDICTION":
        defaults = {"vertex": True, "http": False, "grpc": False}
    set_paths = [flag.path for flag, _ in given.settings]
    for name, allow in _PLATFORMS.items():
        if allow not in given.names() and any(
            path.startswith(f"frontends.{name}.") for path in set_paths
        ):
            defaults.setdefault(name, False)
    if defaults:
        merged["frontends"] = {**defaults, **frontends}
    repository = _repository(environment)
    is_given = has_model or "repositories" in merged or given.names() & _REPOSITORY_FLAGS
    if repository and not is_given:
        merged["repositories"] = [{"url": repository}]
    return merged


def _repository(environment: Mapping[str, str]) -> str:
    if storage := environment.get("AIP_STORAGE_URI"):
        return storage
    folder = environment.get("AZUREML_MODEL_DIR")
    if not folder:
        return ""
    models = Path(folder, "models")
    return str(models if models.is_dir() else folder)


def with_http_limits(config: ServerConfig, given: GivenFlags) -> ServerConfig:
    """Apply the flags for HTTP's restricted APIs and its input size to the platforms' endpoints.

    Triton does so, too. Options in server.yaml have precedence.
    """
    shared = {
        flag.path.rpartition(".")[2]: values if flag.repeated else values[-1]
        for flag, values in given.settings
        if flag.name in _SHARED_WITH_HTTP
    }
    changed = dict(config.frontends)
    for name in _PLATFORMS:
        options = changed.get(name)
        if options is True or isinstance(options, Mapping):
            changed[name] = {**shared, **({} if options is True else options)}
    return msgspec.structs.replace(config, frontends=changed)


def check_safe_ports(config: ServerConfig, manager: PluginManager) -> None:
    """Check that the other endpoints use ports that SageMaker allows.

    Raises BadFlags with Triton's text.
    """
    table = manager.table("tritonpy_frontends")
    enabled = config.enabled_frontends(table)
    allowed = str(enabled.get("sagemaker", {}).get("safe_port_range") or "")
    lowest, dash, highest = allowed.partition("-")
    if not (dash and lowest.isdigit() and highest.isdigit()):
        return  # no range, or decoding the options reports it
    problems = []
    for name, options in enabled.items():
        if name == "sagemaker" or name not in table:
            continue
        port = options.get("port", _default_port(table[name].load().Options))
        if isinstance(port, int) and not int(lowest) <= port <= int(highest):
            problems.append(
                f"The server cannot listen to {_TITLES.get(name, name)} requests at port {port}, "
                f"allowed port range is [{lowest}, {highest}]"
            )
    if problems:
        raise BadFlags(problems)


def _default_port(kind: type[Options]) -> object:
    """Return the default of the option `port`, None without one."""
    for field in msgspec.structs.fields(kind):
        if field.name == "port":
            is_made = field.default_factory is not msgspec.NODEFAULT
            return field.default_factory() if is_made else field.default
    return None
