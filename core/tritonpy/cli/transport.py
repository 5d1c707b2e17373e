"""`--transport`: what carries the frontends, and the transports in whose process the server runs."""

from __future__ import annotations

from typing import Any

import msgspec

from tritonpy.api.transport import Launch, ProcessTransport, Transport
from tritonpy.cli.overlay import Origins
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.plugins import PluginManager


def with_written_options(merged: object, raw: object, origins: Origins) -> object:
    """Return the merged configuration where a transport that the command line names keeps the options that the file `raw` has for it."""
    chosen = merged.get("transport") if isinstance(merged, dict) else None
    written = raw.get("transport") if isinstance(raw, dict) else None
    if isinstance(merged, dict) and isinstance(chosen, str) and isinstance(written, dict) and chosen in written:
        origins.flags.pop("transport", None)  # what is wrong with them is in the file
        return {**merged, "transport": {chosen: written[chosen]}}
    return merged


def process_transport(config: ServerConfig, manager: PluginManager) -> type[ProcessTransport] | None:
    """Return the transport in whose process the server is to run; None where it runs in this one. Raises PluginError."""
    for name in config.transport:  # one at most: the configuration was checked
        kind: type[Transport] = manager.get("tritonpy_transports", name, "transport").load()
        return kind if issubclass(kind, ProcessTransport) else None
    return None


def launch_transport(kind: type[ProcessTransport], config: ServerConfig, manager: PluginManager) -> int:
    """Serve in the process of the transport that `config` names; return its exit status. Raises StartupError."""
    (name, raw), *_ = config.transport.items()
    enabled = config.enabled_frontends(manager.table("tritonpy_frontends"))
    frontends: dict[str, Any] = {
        frontend: decode_options(
            manager.get("tritonpy_frontends", frontend, "frontend").load().Options, options, f"frontends.{frontend}"
        )
        for frontend, options in enabled.items()
        if frontend in kind.carries
    }
    launch = Launch(msgspec.json.encode(config), config.host, frontends, config.exit_timeout_s)
    return kind(decode_options(kind.Options, raw, f"transport.{name}")).run(launch)
