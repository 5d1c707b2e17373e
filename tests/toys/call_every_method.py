"""Call every method of tritonclient's four clients from the interpreter that runs the server.

Usage: `call_every_method.py client|server REPOSITORY`. The first argument selects the modules that
are imported first.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path

CLIENT = (
    "tritonclient.grpc",
    "tritonclient.grpc.aio",
    "tritonclient.http",
    "tritonclient.http.aio",
)
SERVER = (
    "tritonpy.server",
    "tritonpy_protos",
    "tritonpy_frontend_grpc.grpcio.frontend",
    "tritonpy_frontend_http.frontend",
)


def main(first: str, repository: str) -> None:
    for module in CLIENT + SERVER if first == "client" else SERVER + CLIENT:
        importlib.import_module(module)
    from tests.client_surface.checks import LOADED, METHODS, check
    from tritonpy_testing import running_server

    server_yaml = {
        "repositories": [{"url": repository}],
        "control": {"mode": "explicit", "load": list(LOADED)},
        "allow_client_shm": True,
        "trace": {"modes": {"triton": {"file": str(Path(repository).parent / "trace.json")}}},
        "frontends": {name: {"port": 0} for name in ("http", "grpc", "metrics")},
    }
    with running_server(server_yaml) as server:
        for kind, method in METHODS:
            asyncio.run(check(server, kind, method))
    print(f"called {len(METHODS)} methods")


if __name__ == "__main__":
    main(*sys.argv[1:])
