"""All hooks of the plugin interface.

A plugin is a module that implements hooks with `hookimpl`. Its distribution names the module under
`[project.entry-points.tritonpy]`:

    from tritonpy import Backend, hookimpl

    class Doubler(Backend):
        def infer(self, inputs):
            return {"OUT": inputs["IN"] * 2}

    @hookimpl
    def tritonpy_backends():
        return {"doubler": Doubler}

Registration hooks take no arguments. They are called when the server starts and return a mapping
from names to classes. A class may be given as a text "module:Class", which is imported when first
needed. Event hooks take arguments and return nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from tritonpy.api.authenticator import Authenticator
    from tritonpy.api.backend import Backend
    from tritonpy.api.batch_policy import BatchPolicy
    from tritonpy.api.cache import Cache
    from tritonpy.api.command import Command
    from tritonpy.api.device import Device
    from tritonpy.api.engine import Engine
    from tritonpy.api.frontend import Frontend, Transport
    from tritonpy.api.frontend_host import FrontendHost
    from tritonpy.api.observer import Observer
    from tritonpy.api.operation import OperationGroup
    from tritonpy.api.rate_limiter import RateLimiter
    from tritonpy.api.repo_agent import RepoAgent
    from tritonpy.api.repository import Repository
    from tritonpy.api.router import Router
    from tritonpy.api.scheduler import Scheduler
    from tritonpy.api.sharing import Sharing
    from tritonpy.api.trace_sink import TraceSink
    from tritonpy.repository.residency import ResidencyPolicy
    from tritonpy.runners.runner import RunnerFactory
    from tritonpy_checks import DoctorCheck, LintRule
    from tritonpy_protos.model_config_pb2 import ModelConfig

PROJECT = "tritonpy"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def tritonpy_backends() -> Mapping[str, type[Backend] | str]:  # type: ignore[empty-body]
    """Backends, by the name in `backend:` of a model configuration."""


@hookspec
def tritonpy_backend_folders() -> Mapping[str, Path]:  # type: ignore[empty-body]
    """Folders of Python-based backends, by the name in `backend:` of a model configuration."""


@hookspec
def tritonpy_runners() -> Mapping[str, type[RunnerFactory] | str]:  # type: ignore[empty-body]
    """Factories of runners, by the name in a model's parameter `isolation`."""


@hookspec
def tritonpy_rate_limiters() -> Mapping[str, type[RateLimiter] | str]:  # type: ignore[empty-body]
    """Rate limiters, by the name in `rate_limit: mode:` of server.yaml."""


@hookspec
def tritonpy_schedulers() -> Mapping[str, type[Scheduler] | str]:  # type: ignore[empty-body]
    """Schedulers, by name: "dynamic", "sequence" and "ensemble" serve that scheduling choice."""


@hookspec
def tritonpy_batch_policies() -> Mapping[str, type[BatchPolicy] | str]:  # type: ignore[empty-body]
    """Batch policies, by the name in a model's parameter `batch_policy`."""


@hookspec
def tritonpy_repositories() -> Mapping[str, type[Repository] | str]:  # type: ignore[empty-body]
    """Model repositories, by URL scheme."""


@hookspec
def tritonpy_residency_policies() -> Mapping[str, type[ResidencyPolicy] | str]:  # type: ignore[empty-body]
    """Residency policies, by name: "lru" serves lazy models and `memory:` of server.yaml."""


@hookspec
def tritonpy_repo_agents() -> Mapping[str, type[RepoAgent] | str]:  # type: ignore[empty-body]
    """Repository agents, by the name in `model_repository_agents` of a model configuration."""


@hookspec
def tritonpy_caches() -> Mapping[str, type[Cache] | str]:  # type: ignore[empty-body]
    """Response caches, by their key under `cache:` of server.yaml."""


@hookspec
def tritonpy_frontends() -> Mapping[str, type[Frontend] | str]:  # type: ignore[empty-body]
    """Frontends, by their key under `frontends:` of server.yaml."""


@hookspec
def tritonpy_frontend_hosts() -> Mapping[str, type[FrontendHost] | str]:  # type: ignore[empty-body]
    """Frontend hosts, by name: "processes" serves `frontend_processes:` of server.yaml."""


@hookspec
def tritonpy_transports() -> Mapping[str, type[Transport] | str]:  # type: ignore[empty-body]
    """Transports, by the name in `transport:` of server.yaml."""


@hookspec
def tritonpy_authenticators() -> Mapping[str, type[Authenticator] | str]:  # type: ignore[empty-body]
    """Authenticators, by their key under `auth:` of server.yaml."""


@hookspec
def tritonpy_sharings() -> Mapping[str, type[Sharing] | str]:  # type: ignore[empty-body]
    """Sharing policies between principals, by their key under `sharing:` of server.yaml."""


@hookspec
def tritonpy_routers() -> Mapping[str, type[Router] | str]:  # type: ignore[empty-body]
    """Routers in front of the engine, by their key under `routers:` of server.yaml."""


@hookspec
def tritonpy_operations() -> Mapping[str, type[OperationGroup] | str]:  # type: ignore[empty-body]
    """Groups of management operations, by their key under `operations:` of server.yaml."""


@hookspec
def tritonpy_observers() -> Mapping[str, type[Observer] | str]:  # type: ignore[empty-body]
    """Observers, by their key under `observers:` of server.yaml."""


@hookspec
def tritonpy_trace_sinks() -> Mapping[str, type[TraceSink] | str]:  # type: ignore[empty-body]
    """Trace sinks, by the name in `trace: mode:` of server.yaml."""


@hookspec
def tritonpy_devices() -> Mapping[str, type[Device] | str]:  # type: ignore[empty-body]
    """Devices, by kind: "cuda" serves instances on GPUs and CUDA shared memory."""


@hookspec
def tritonpy_commands() -> Mapping[str, type[Command] | str]:  # type: ignore[empty-body]
    """Subcommands of the command line, by name."""


@hookspec
def tritonpy_lint_rules() -> Mapping[str, type[LintRule] | str]:  # type: ignore[empty-body]
    """Rules of `tritonpy lint`, by code."""


@hookspec
def tritonpy_doctor_checks() -> Mapping[str, type[DoctorCheck] | str]:  # type: ignore[empty-body]
    """Checks of `tritonpy doctor`, by name."""


@hookspec
def tritonpy_server_started(engine: Engine) -> None:
    """Called when the models are loaded and every frontend listens."""


@hookspec
def tritonpy_server_stopping(engine: Engine) -> None:
    """Called when the server was requested to stop, before it drains."""


@hookspec
def tritonpy_model_loaded(name: str, version: int, config: ModelConfig) -> None:
    """Called when a model version has become ready."""


@hookspec
def tritonpy_model_unloaded(name: str, version: int, config: ModelConfig) -> None:
    """Called when a model version has finished its last request and is closed."""


def registration_hooks() -> tuple[str, ...]:
    """Return the names of the registration hooks in the order of `tritonpy plugins`."""
    return tuple(
        name for name, value in globals().items()
        if name.startswith("tritonpy_") and _takes_nothing(value)
    )  # fmt: skip


def _takes_nothing(function: Any) -> bool:
    return bool(function.__code__.co_argcount == 0)
