"""Options of the cache: Triton's keys of `--cache-config=redis,…` and additional ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tritonpy import Options

_NO_ADDRESS = (
    "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' "
    "and 'port' in the configuration - e.g. "
    "tritonserver --cache-config redis,host=redis --cache-config redis,port=6379 "
    "--model-repository=/models ..."
)
Milliseconds = Annotated[int, Meta(ge=0)]


class RedisCacheOptions(Options, frozen=True):
    """The keys of `cache: {redis: {…}}`. Times are in ms.

    0 means no timeout. Then a hanging Redis blocks a thread, but no request.
    """

    host: Annotated[str, Meta(description="Host name or address of Redis; required.")] = ""
    port: Annotated[int, Meta(ge=0, le=65535, description="Port of Redis; required.")] = 0
    user: Annotated[
        str, Meta(description="User name; default: the value of TRITONCACHE_REDIS_USERNAME.")
    ] = ""
    # Accept numbers, so that no type error shows the password.
    password: Annotated[
        str | int, Meta(description="Password; default: the value of TRITONCACHE_REDIS_PASSWORD.")
    ] = ""
    db: Annotated[int, Meta(ge=0, description="Number of the database.")] = 0
    connect_timeout: Annotated[Milliseconds, Meta(description="Timeout for connecting.")] = 1000
    socket_timeout: Annotated[
        Milliseconds, Meta(description="Timeout for a part of a response.")
    ] = 1000
    pool_size: Annotated[
        int, Meta(ge=1, le=256, description="Maximum number of connections and concurrent calls.")
    ] = 4
    wait_timeout: Annotated[
        Milliseconds, Meta(description="Timeout for a connection from the pool.")
    ] = 1000
    deadline: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "Milliseconds after which a request stops waiting for its lookup and is computed."
            ),
        ),
    ] = 100
    ttl: Annotated[
        int, Meta(ge=0, description="Seconds that a response is kept; 0: until Redis evicts it.")
    ] = 0
    prefix: Annotated[str, Meta(description="Prefix of the keys.")] = "tritonpy:"
    tls_enabled: Annotated[
        bool, Meta(description="Use TLS and verify the certificate of Redis.")
    ] = False
    cert: Annotated[Path | None, Meta(description="File of the client certificate.")] = None
    key: Annotated[Path | None, Meta(description="File of the client certificate's key.")] = None
    cacert: Annotated[Path | None, Meta(description="File of the CA certificates.")] = None
    cacert_dir: Annotated[Path | None, Meta(description="Folder of CA certificates.")] = None
    sni: Annotated[
        str, Meta(description="Expected name in the certificate of Redis; default: the host.")
    ] = ""

    def __post_init__(self) -> None:
        if not self.host or not self.port:
            raise ValueError(_NO_ADDRESS)
        if (self.cert is None) != (self.key is None):
            raise ValueError("'cert' and 'key' must be given together")
        if not self.tls_enabled and any([self.cert, self.cacert, self.cacert_dir, self.sni]):
            raise ValueError("'cert', 'key', 'cacert', 'cacert_dir' and 'sni' need 'tls_enabled'")
