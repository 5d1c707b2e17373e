"""Pure parsing of repository URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonpy import StartupError
from tritonpy.repository import redact_urls

_S3_SERVER = re.compile(
    r"(?:(https?)://([^/:]+|\[[^]/]+\])(?::(\d+))?|([^/:]+|\[[^]/]+\]):(\d+))/(.*)"
)
_AZURE_SUFFIXES = (".blob.core.windows.net", ".dfs.core.windows.net")
PROTOCOLS = {"s3": "s3", "gs": "gs", "as": "abfs"}
"""fsspec's protocols by Triton's schemes."""


@dataclass(frozen=True, slots=True)
class Location:
    """Location of a repository.

    `url` is the configured URL. `root` is the folder of the models in fsspec's file system for
    `protocol`: it begins with the bucket or container in a cloud, and is the whole URL elsewhere.
    `endpoint` is the URL of an S3-compatible server, `account` the Azure account; both may be
    empty.
    """

    url: str
    scheme: str
    protocol: str
    root: str
    endpoint: str = ""
    account: str = ""

    @property
    def redacted_url(self) -> str:
        """The URL without secrets, for logs and errors."""
        return redact_urls(self.url)


def parse_location(url: str) -> Location:
    """Return the location of `url`.

    Raises `StartupError` if the URL has no bucket, container or valid server.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in PROTOCOLS:
        return Location(url, scheme, scheme, url.rstrip("/"))
    endpoint = account = ""
    if scheme == "s3" and (server := _S3_SERVER.fullmatch(rest)):
        protocol, host, port, bare_host, bare_port, rest = server.groups()
        port = port or bare_port
        endpoint = f"{protocol or 'http'}://{host or bare_host}" + (f":{port}" if port else "")
    parts = [part for part in rest.split("/") if part]
    if scheme == "as":
        account, *parts = parts or [""]
        for suffix in _AZURE_SUFFIXES:
            account = account.removesuffix(suffix)
    if not parts:
        what = "container" if scheme == "as" else "bucket"
        redacted = redact_urls(url)
        raise StartupError(f"No {what} name found in path: {redacted}; use {_EXAMPLES[scheme]}")
    if parts[0].endswith(":"):
        raise StartupError(
            f"model repository '{redact_urls(url)}' contains no server: use {_EXAMPLES[scheme]}; "
            "do not put credentials into it"
        )
    return Location(url, scheme, PROTOCOLS[scheme], "/".join(parts), endpoint, account)


_EXAMPLES = {
    "s3": (
        "s3://bucket/path, or s3://https://host:port/bucket/path for a server other than Amazon's"
    ),
    "gs": "gs://bucket/path",
    "as": "as://account/container/path",
}
