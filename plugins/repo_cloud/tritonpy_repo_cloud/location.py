"""Which place a repository's URL means. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonpy import StartupError, without_secrets

_S3_SERVER = re.compile(r"(?:(https?)://([^/:]+|\[[^]/]+\])(?::(\d+))?|([^/:]+|\[[^]/]+\]):(\d+))/(.*)")
_AZURE_SUFFIXES = (".blob.core.windows.net", ".dfs.core.windows.net")
PROTOCOLS = {"s3": "s3", "gs": "gs", "as": "abfs"}
"""What fsspec calls Triton's schemes."""


@dataclass(frozen=True, slots=True)
class Location:
    """`url` is what the operator wrote; `root` is the folder of the models as the file system of fsspec's `protocol` calls it.

    `root` begins with the bucket or container in a cloud, and is the whole URL elsewhere. `endpoint` is the URL of another S3 server than
    Amazon's, `account` that of Azure; both are empty where they are not said.
    """

    url: str
    scheme: str
    protocol: str
    root: str
    endpoint: str = ""
    account: str = ""

    @property
    def shown(self) -> str:
        """The URL as logs and errors show it."""
        return without_secrets(self.url)


def parse_location(url: str) -> Location:
    """Return where `url` is. Raises StartupError for one that names no bucket or container, or no server that can be meant."""
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
        shown = without_secrets(url)
        raise StartupError(f"No {what} name found in path: {shown}; a model repository is written {_EXAMPLES[scheme]}")
    if parts[0].endswith(":"):
        raise StartupError(
            f"model repository '{without_secrets(url)}' names no server: it is written {_EXAMPLES[scheme]}; "
            "credentials have no place in it"
        )
    return Location(url, scheme, PROTOCOLS[scheme], "/".join(parts), endpoint, account)


_EXAMPLES = {
    "s3": "s3://bucket/path, or s3://https://host:port/bucket/path for another server than Amazon's",
    "gs": "gs://bucket/path",
    "as": "as://account/container/path",
}
