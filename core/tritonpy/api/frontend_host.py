"""The interface of frontend hosts, which decide where the frontends of a server run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.frontend import Frontend
from tritonpy_metrics import CustomMetrics

if TYPE_CHECKING:
    from tritonpy.tracing.tracing import Tracing
    from tritonpy_config.server import ServerConfig


@dataclass(frozen=True, slots=True)
class FrontendHostContext:
    """What a frontend host gets: the configuration of the server, its traces and its metrics."""

    config: ServerConfig
    tracing: Tracing
    metrics: CustomMetrics


class FrontendHost(ABC):
    """Runs frontends outside of the engine's process; hook `tritonpy_frontend_hosts`.

    Without a host, frontends run on the event loop of the engine. The server makes one host, before
    its frontends start, if server.yaml sets `frontend_processes:`; the name in the hook is
    "processes".

        class OwnProcesses(FrontendHost):
            def host(self, frontends):
                return {name: Proxy(frontend, self) for name, frontend in frontends.items()}

        @hookimpl
        def tritonpy_frontend_hosts():
            return {"processes": OwnProcesses}
    """

    def __init__(self, context: FrontendHostContext) -> None:
        self.context = context

    @abstractmethod
    def host(self, frontends: Mapping[str, Frontend]) -> dict[str, Frontend]:
        """Return, for each name, the frontend that the server starts, drains and stops.

        It is a proxy for one that the host runs elsewhere, or the given one. A frontend whose
        `scales` is false must run in the engine's process. Called once, before any of them starts.
        """

    def models_changed(self) -> None:
        """Drop cached data of models: a version was loaded or unloaded (optional).

        Called from any thread.
        """
