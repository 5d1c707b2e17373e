"""The authorizer from the sections `auth` and `access` of server.yaml."""

from __future__ import annotations

import logging

from tritonpy.access.authorizer import Authorizer
from tritonpy.access.denials import Denials
from tritonpy.api.authenticator import Authenticator
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.plugins import PluginManager

HOOK = "tritonpy_authenticators"


def make_authorizer(config: ServerConfig, plugins: PluginManager, metrics: ModelMetrics) -> Authorizer:
    """Return the authorizer with the authenticators of `config.auth`, in that order.

    Raises StartupError.
    """
    authenticators: dict[str, Authenticator] = {}
    for name, raw in config.auth.items():
        kind = plugins.get(HOOK, name, "authenticator").load()
        authenticators[name] = kind(decode_options(kind.Options, raw, f"auth.{name}"))
    return Authorizer(authenticators, config.access.open, Denials(metrics, logging.getLogger("tritonpy.access")))
