"""The transport: starts Envoy with the server inside, and watches over it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from tritonpy import Launch, Options, ProcessTransport, StartupError
from tritonpy_frontend_envoy.launching.bootstrap import bootstrap
from tritonpy_frontend_envoy.launching.endpoint import endpoints_of
from tritonpy_frontend_envoy.launching.places import claim, numbered
from tritonpy_frontend_envoy.launching.supervisor import Supervisor
from tritonpy_frontend_envoy.options import EnvoyOptions


class EnvoyTransport(ProcessTransport):
    """HTTP and gRPC on one Envoy process. Where both have one port, the content type says which protocol a request speaks."""

    Options: ClassVar[type[Options]] = EnvoyOptions
    carries: ClassVar[Mapping[str, str]] = {
        "http": "tritonpy_frontend_envoy.http.frontend:EnvoyHttpFrontend",
        "grpc": "tritonpy_frontend_envoy.grpc.frontend:EnvoyGrpcFrontend",
    }
    shares_ports: ClassVar[bool] = True
    options: EnvoyOptions

    def run(self, launch: Launch) -> int:
        """Serve until a signal ends it, and return the exit status. Raises StartupError where Envoy or the server cannot start."""
        endpoints = endpoints_of(launch)
        if not endpoints:
            raise StartupError("transport 'envoy' has nothing to carry: neither the frontend http nor grpc is on")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tritonpy-envoy-")))
            if self.options.http3:
                endpoints = [numbered(endpoint) for endpoint in endpoints]
            for endpoint in endpoints:
                stack.enter_context(claim(endpoint))
            configuration = bootstrap(endpoints, self.options, folder)
            return Supervisor(configuration, self.options, folder).run(launch)
