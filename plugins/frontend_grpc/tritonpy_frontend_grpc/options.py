"""All options of gRPC frontends, independent of the transport."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy import TlsOptions
from tritonpy_frontend_grpc.connection_options import ConnectionOptions


class GrpcOptions(ConnectionOptions, frozen=True):
    """The keys of `frontends: grpc:`."""

    port: Annotated[int, Meta(ge=0, le=65535, description="port of the gRPC endpoint; 0 picks a free one")] = 8001
    host: Annotated[str | None, Meta(description="address to listen on instead of the server's, or unix:/path")] = None
    reuse_port: Annotated[bool, Meta(description="share the port with other servers on this machine")] = False
    socket_mode: Annotated[str, Meta(pattern="^0?[0-7]{3}$", description="file mode of unix:/path, as for chmod")] = (
        "0660"
    )
    tls: Annotated[TlsOptions, Meta(description="certificate and key that encrypt the port")] = TlsOptions()
