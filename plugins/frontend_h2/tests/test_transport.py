from __future__ import annotations

import subprocess
import sys

import tritonclient.grpc

import tritonpy_frontend_h2
from tritonpy import running_server
from tritonpy.testing import TransportContract
from tritonpy_frontend_grpc.frontend import GrpcFrontend
from tritonpy_frontend_h2.frontend import H2GrpcFrontend
from tritonpy_frontend_h2.transport import H2Transport


class TestH2(TransportContract):
    plugin_class = H2Transport
    plugin = tritonpy_frontend_h2
    name = "h2"
    frontend = "grpc"

    def test_its_frontend_takes_the_options_of_the_one_in_whose_place_it_stands(self):
        assert self.kinds() == {"grpc": H2GrpcFrontend}
        assert H2GrpcFrontend.Options is GrpcFrontend.Options


def test_a_server_inside_another_program_has_it_too(tmp_path):
    raw = {
        "transport": "h2",
        "repositories": [{"url": str(tmp_path)}],
        "frontends": {"grpc": {"port": 0}, "http": False, "metrics": False},
    }
    with (
        running_server(raw) as server,
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
    ):
        assert client.is_server_ready()
        assert type(server.server.frontends["grpc"]) is H2GrpcFrontend


def test_the_frontend_is_there_without_grpcio():
    code = "import sys; import tritonpy_frontend_h2.frontend; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
