from __future__ import annotations

import pytest

from tritonpy_config.server import InvalidServerConfig, decode_options
from tritonpy_network.frontend_options import TlsOptions

PAIR = {"certificate_file": "c", "key_file": "k"}


@pytest.mark.parametrize(
    ("options", "on"),
    [
        ({}, False),
        (PAIR, True),
        ({**PAIR, "enabled": False}, False),
        ({**PAIR, "enabled": True}, True),
        ({"client_ca_file": "r"}, False),
        ({**PAIR, "client_ca_file": "r", "mutual": True, "enabled": False}, True),
    ],
)
def test_a_port_with_a_certificate_is_encrypted_unless_disabled(options, on):
    assert TlsOptions(**options).on is on


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"enabled": True}, "tls.certificate_file and tls.key_file"),
        ({"certificate_file": "c"}, "tls.key_file"),
        ({"key_file": "k"}, "tls.certificate_file"),
        ({**PAIR, "mutual": True}, "tls.client_ca_file"),
    ],
)
def test_missing_files_are_named(options, missing):
    with pytest.raises(InvalidServerConfig, match=f"frontends.http: TLS needs {missing}$"):
        decode_options(TlsOptions, options, "frontends.http")
