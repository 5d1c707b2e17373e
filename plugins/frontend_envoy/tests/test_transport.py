from __future__ import annotations

import pytest

import tritonpy_frontend_envoy
from tritonpy import StartupError, running_server
from tritonpy.testing import ProcessTransportContract
from tritonpy_frontend_envoy.http.frontend import EnvoyHttpFrontend
from tritonpy_frontend_envoy.transport import EnvoyTransport
from tritonpy_frontend_grpc.frontend import GrpcFrontend
from tritonpy_frontend_http.frontend import HttpFrontend


class TestEnvoy(ProcessTransportContract):
    plugin_class = EnvoyTransport
    plugin = tritonpy_frontend_envoy
    name = "envoy"

    def test_its_frontends_take_the_options_of_those_in_whose_place_they_stand(self):
        kinds = self.kinds()
        assert {name: kind.Options for name, kind in kinds.items()} == {
            "http": HttpFrontend.Options,
            "grpc": GrpcFrontend.Options,
        }
        assert kinds["http"] is EnvoyHttpFrontend


def test_inside_another_program_it_says_what_it_needs(tmp_path):
    raw = {
        "transport": "envoy",
        "repositories": [{"url": str(tmp_path)}],
        "frontends": {"grpc": False, "metrics": False},
    }
    with pytest.raises(StartupError, match="a process that 'tritonpy serve' starts"), running_server(raw):
        pass


def test_without_http_and_grpc_there_is_nothing_to_carry(tmp_path):
    contract = TestEnvoy()
    launch = contract.launch(0, tmp_path)
    launch.frontends.clear()
    with pytest.raises(StartupError, match="nothing to carry"):
        contract.transport().run(launch)
