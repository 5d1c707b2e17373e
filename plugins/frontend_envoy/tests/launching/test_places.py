from __future__ import annotations

import os
import socket

import pytest

from tritonpy import StartupError
from tritonpy_frontend_envoy.launching.endpoint import Endpoint
from tritonpy_frontend_envoy.launching.places import claim
from tritonpy_frontend_http.options import HttpOptions


def endpoint(port=0, host="127.0.0.1", **options):
    return Endpoint(host, port, HttpOptions(**options), None)


def test_a_free_port_is_left_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with claim(endpoint(port)), socket.create_server(("127.0.0.1", port)):
        pass


def test_a_taken_port_is_named_with_the_reason():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(StartupError, match=rf"HTTP on 127\.0\.0\.1:{port}: Address already in use"),
            claim(endpoint(port)),
        ):
            pass


def test_a_port_that_is_shared_may_be_taken():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with claim(endpoint(taken.getsockname()[1], reuse_port=True)):
            pass


def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(StartupError, match=r"192\.0\.2\.1"), claim(endpoint(host="192.0.2.1")):
        pass


def test_a_socket_that_a_dead_server_left_is_in_nobodys_way_and_none_is_left_behind(tmp_path):
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with claim(endpoint(host=f"unix:{path}")):
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as envoys:
            envoys.bind(str(path))
    assert os.listdir(tmp_path) == []


def test_a_socket_on_which_somebody_listens_stays_his(tmp_path):
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(StartupError, match="another server listens there"), claim(endpoint(host=f"unix:{path}")):
            pass
        assert path.exists()
