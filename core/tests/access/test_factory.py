from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tritonpy import (
    Authenticator,
    CustomMetrics,
    ModelMetrics,
    Options,
    PluginError,
    Principal,
    Verb,
    hookimpl,
    install_command,
)
from tritonpy.access.factory import make_authorizer
from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.plugins import make_plugin_manager


class KeyOptions(Options, frozen=True):
    key: str


class Key(Authenticator):
    Options = KeyOptions

    def authenticate(self, headers):
        return Principal(self.options.key) if headers.get("x") == self.options.key else None


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_authenticators():
        return {"one": Key, "other": Key}


def build(raw):
    manager = make_plugin_manager(discover=False)
    manager.register(Plugin, "test")
    return make_authorizer(decode_server_config(raw), manager, ModelMetrics(CustomMetrics()))


def test_authenticators_are_made_of_their_options():
    kept = build({"auth": {"one": {"key": "a"}, "other": {"key": "b"}}, "access": {"open": []}})
    assert kept.admit({"x": "a"}, Verb.ADMIN).name == "a"
    assert kept.admit({"x": "b"}, Verb.INFER, "m").name == "b"
    assert kept.guards("health")


def test_an_unknown_endpoint_cannot_be_public():
    with pytest.raises(InvalidServerConfig, match="open"):
        build({"access": {"open": ["inference"]}})


def test_wrong_options_and_missing_plugins_are_named():
    with pytest.raises(InvalidServerConfig, match=r"auth\.one.*'key' is missing"):
        build({"auth": {"one": {}}})
    with pytest.raises(PluginError, match=re.escape(install_command("tritonpy-auth-jwt"))):
        build({"auth": {"jwt": {}}})


def test_a_server_without_authenticators_imports_no_authorizer():
    script = """
import sys
from tritonpy.config.server import decode_server_config
from tritonpy.server import build
import tritonpy_frontend_http.frontend, tritonpy_frontend_grpc.grpcio.frontend, tritonpy_metrics_prometheus.frontend
build(decode_server_config({"frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": {"port": 0}}}))
print(sorted(name for name in sys.modules if name.startswith(("tritonpy.access.", "tritonpy_auth_api_keys.", "tritonpy_auth_jwt.", "jwt"))
    or name.endswith((".access", ".guarded", ".guard"))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['tritonpy.access', 'tritonpy.access.restriction']"
