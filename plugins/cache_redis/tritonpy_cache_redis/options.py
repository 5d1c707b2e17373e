"""What the cache is configured with: Triton's keys of `--cache-config=redis,…`, and a few of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tritonpy import Options

_NO_ADDRESS = (
    "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' and 'port' in the configuration - e.g. "
    "tritonserver --cache-config redis,host=redis --cache-config redis,port=6379 --model-repository=/models ..."
)
Milliseconds = Annotated[int, Meta(ge=0)]


class RedisCacheOptions(Options, frozen=True):
    """The keys of `cache: {redis: {…}}`. Times are in ms; 0 is to wait without end, which costs a thread where Redis hangs, and no request."""

    host: Annotated[str, Meta(description="Name or address of Redis; required.")] = ""
    port: Annotated[int, Meta(ge=0, le=65535, description="Port of Redis; required.")] = 0
    user: Annotated[
        str, Meta(description="User to log in as; if not given, what TRITONCACHE_REDIS_USERNAME holds.")
    ] = ""
    # a number is a password too, and must not come back in a message about its type
    password: Annotated[
        str | int, Meta(description="Password; if not given, what TRITONCACHE_REDIS_PASSWORD holds.")
    ] = ""
    db: Annotated[int, Meta(ge=0, description="Number of the database.")] = 0
    connect_timeout: Annotated[Milliseconds, Meta(description="Longest wait for a connection.")] = 1000
    socket_timeout: Annotated[Milliseconds, Meta(description="Longest wait for a part of an answer.")] = 1000
    pool_size: Annotated[int, Meta(ge=1, le=256, description="Connections, and calls at the same time.")] = 4
    wait_timeout: Annotated[Milliseconds, Meta(description="Longest wait for a connection of the pool.")] = 1000
    deadline: Annotated[
        int,
        Meta(ge=1, description="Milliseconds after which a request stops waiting for its look-up, and is computed."),
    ] = 100
    ttl: Annotated[int, Meta(ge=0, description="Seconds that an answer is kept; 0 leaves that to Redis.")] = 0
    prefix: Annotated[str, Meta(description="What the keys begin with.")] = "tritonpy:"
    tls_enabled: Annotated[bool, Meta(description="Encrypt, and check the certificate of Redis.")] = False
    cert: Annotated[Path | None, Meta(description="File of the certificate to show to Redis.")] = None
    key: Annotated[Path | None, Meta(description="File of that certificate's key.")] = None
    cacert: Annotated[Path | None, Meta(description="File of the certificates that vouch for Redis.")] = None
    cacert_dir: Annotated[Path | None, Meta(description="Folder of such certificates.")] = None
    sni: Annotated[str, Meta(description="Name that the certificate of Redis must have, if it is not the host.")] = ""

    def __post_init__(self) -> None:
        if not self.host or not self.port:
            raise ValueError(_NO_ADDRESS)
        if (self.cert is None) != (self.key is None):
            raise ValueError("'cert' and 'key' are given together or not at all")
        if not self.tls_enabled and any([self.cert, self.cacert, self.cacert_dir, self.sni]):
            raise ValueError("'cert', 'key', 'cacert', 'cacert_dir' and 'sni' need 'tls_enabled'")
