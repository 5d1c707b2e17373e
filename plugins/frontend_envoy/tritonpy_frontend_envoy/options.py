"""The options of the transport."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tritonpy import Options


class EnvoyOptions(Options, frozen=True):
    """The options under `transport: envoy:` of server.yaml; those of ports and protocols are under `frontends:` as ever."""

    threads: Annotated[int, Meta(ge=1, le=256, description="Threads in which Envoy reads and writes connections")] = 1
    http3: Annotated[bool, Meta(description="Speak HTTP/3 too, on the UDP port of each encrypted TCP port")] = False
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        Meta(description="Which of its own lines Envoy writes, beside the server's switches"),
    ] = "warning"
