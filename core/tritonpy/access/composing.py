"""From the sections `auth` and `access` of server.yaml to a gatekeeper."""

from __future__ import annotations

import logging

from tritonpy.access.denials import Denials
from tritonpy.access.gatekeeper import Gatekeeper
from tritonpy.api.authenticator import Authenticator
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.plugins import PluginManager

HOOK = "tritonpy_authenticators"


def make_gatekeeper(config: ServerConfig, plugins: PluginManager, metrics: ModelMetrics) -> Gatekeeper:
    """Return the gatekeeper over the authenticators that `config.auth` names, in their order there. Raises StartupError."""
    authenticators: dict[str, Authenticator] = {}
    for name, raw in config.auth.items():
        kind = plugins.get(HOOK, name, "authenticator").load()
        authenticators[name] = kind(decode_options(kind.Options, raw, f"auth.{name}"))
    return Gatekeeper(authenticators, config.access.open, Denials(metrics, logging.getLogger("tritonpy.access")))
