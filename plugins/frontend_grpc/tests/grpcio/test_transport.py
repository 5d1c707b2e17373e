from __future__ import annotations

import tritonclient.grpc

import tritonpy_frontend_grpc
from tritonpy import running_server
from tritonpy_frontend_grpc.grpcio.frontend import GrpcFrontend
from tritonpy_frontend_grpc.grpcio.transport import GrpcioTransport
from tritonpy_testing import TransportContract


class TestGrpcio(TransportContract):
    plugin_class = GrpcioTransport
    plugin = tritonpy_frontend_grpc
    name = "grpcio"
    frontend = "grpc"

    def test_the_frontend_is_grpcio(self):
        assert self.kinds() == {"grpc": GrpcFrontend}


def test_an_embedded_server_may_use_the_transport(tmp_path):
    raw = {
        "transport": "grpcio",
        "repositories": [{"url": str(tmp_path)}],
        "frontends": {"grpc": {"port": 0}, "http": False, "metrics": False},
    }
    with (
        running_server(raw) as server,
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
    ):
        assert client.is_server_ready()
        assert type(server.server.frontends["grpc"]) is GrpcFrontend
