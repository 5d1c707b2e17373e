from __future__ import annotations

from ipaddress import ip_address

import pytest

from tritonpy import Launch, StartupError
from tritonpy_frontend_envoy.launching.endpoint import endpoints_of
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_http.options import HttpOptions
from tritonpy_frontend_http.tls_options import HttpTlsOptions


def launch(**frontends):
    return Launch(b"", "127.0.0.1", frontends, 30)


def test_each_protocol_has_its_own_port():
    http, grpc = endpoints_of(launch(http=HttpOptions(), grpc=GrpcOptions(host="::1")))
    assert (http.name, http.host, http.port, http.grpc) == ("http", "127.0.0.1", 8000, None)
    assert (grpc.name, grpc.host, grpc.port, grpc.http) == ("grpc", "::1", 8001, None)
    assert (http.owner, grpc.owner) == ("frontends.http", "frontends.grpc")


def test_two_protocols_on_one_port_are_one_endpoint():
    (both,) = endpoints_of(launch(http=HttpOptions(port=9000), grpc=GrpcOptions(port=9000)))
    assert (both.name, both.port) == ("both", 9000)
    assert both.http is not None
    assert both.grpc is not None


def test_a_name_is_the_address_that_it_stands_for():
    (http,) = endpoints_of(launch(http=HttpOptions(host="localhost")))
    assert ip_address(http.host).is_loopback


def test_a_name_that_nobody_knows_is_told():
    with pytest.raises(StartupError, match=r"cannot listen on nobody\.invalid: "):
        endpoints_of(launch(http=HttpOptions(host="nobody.invalid")))


def test_two_free_ports_are_two_ports():
    assert len(endpoints_of(launch(http=HttpOptions(port=0), grpc=GrpcOptions(port=0)))) == 2


def test_two_protocols_on_one_socket_are_one_endpoint():
    (both,) = endpoints_of(launch(http=HttpOptions(host="unix:/run/x"), grpc=GrpcOptions(host="unix:///run/x")))
    assert both.path == "/run/x"


def test_one_protocol_alone_is_served_alone():
    assert [one.name for one in endpoints_of(launch(grpc=GrpcOptions()))] == ["grpc"]
    assert endpoints_of(launch()) == []


@pytest.mark.parametrize(
    ("http", "grpc", "name"),
    [
        ({"reuse_port": True}, {}, "reuse_port"),
        ({"tls": HttpTlsOptions(certificate_file="a", key_file="b")}, {}, "tls.certificate_file"),
    ],
)
def test_what_a_shared_port_cannot_be_twice_is_refused_by_name(http, grpc, name):
    with pytest.raises(StartupError, match=f"frontends.http.{name} and frontends.grpc.{name} must be the same"):
        endpoints_of(launch(http=HttpOptions(port=9000, **http), grpc=GrpcOptions(port=9000, **grpc)))
