"""Asks a server, with both of tritonclient's protocols, from the interpreter that runs it: `ask_everything.py client|server REPOSITORY`.

The first argument says whose modules are imported first.
"""

from __future__ import annotations

import importlib
import sys

CLIENT = ("tritonclient.grpc", "tritonclient.grpc.aio", "tritonclient.http", "tritonclient.http.aio")
SERVER = ("tritonpy.server", "tritonpy_protos", "tritonpy_frontend_grpc.frontend", "tritonpy_frontend_http.frontend")


def ask(protocol, address: str) -> None:
    import numpy as np

    with protocol.InferenceServerClient(address) as client:
        assert client.is_server_ready()
        values = np.arange(16, dtype=np.int32).reshape(1, 16)
        inputs = [protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for given in inputs:
            given.set_data_from_numpy(values)
        assert (client.infer("add_sub", inputs).as_numpy("OUTPUT0") == 2 * values).all()
        assert "add_sub" in str(client.get_model_config("add_sub"))
        assert "add_sub" in str(client.get_inference_statistics("add_sub"))


def main(first: str, repository: str) -> None:
    for module in CLIENT + SERVER if first == "client" else SERVER + CLIENT:
        importlib.import_module(module)
    import tritonclient.grpc
    import tritonclient.http

    from tritonpy.testing import running_server

    frontends = {name: {"port": 0} for name in ("http", "grpc", "metrics")}
    with running_server({"repositories": [{"url": repository}], "frontends": frontends}) as server:
        ask(tritonclient.http, server.http)
        ask(tritonclient.grpc, server.grpc)
    print("asked everything")


if __name__ == "__main__":
    main(*sys.argv[1:])
