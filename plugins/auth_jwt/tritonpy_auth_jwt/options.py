"""What the authenticator `jwt` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from tritonpy import Options

Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
]  # fmt: skip
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class JwtOptions(Options, frozen=True):
    """Options under `auth: jwt:` of server.yaml."""

    algorithms: Annotated[
        tuple[Algorithm, ...], Meta(description="Signatures that are accepted; what a token says never adds one")
    ] = ()
    jwks_file: Annotated[Path | None, Meta(description="File with the JSON Web Key Set")] = None
    jwks_url: Annotated[str | None, Meta(description="Where the set is fetched; https, or http on this machine")] = None
    issuer: Annotated[str, Meta(description="The claim iss that tokens must have")] = ""
    audience: Annotated[str, Meta(description="The claim aud that tokens must have, among others")] = ""
    leeway_s: Annotated[float, Meta(ge=0, le=300, description="Seconds by which clocks may differ")] = 0
    name_claim: Annotated[str, Meta(min_length=1, description="The claim that names the caller in logs")] = "sub"
    rights_claim: Annotated[str, Meta(min_length=1, description="The claim that lists the caller's rights")] = (
        "tritonpy"
    )
    refresh_s: Annotated[
        float, Meta(gt=0, description="Seconds between two readings of the set; a file is looked at every second")
    ] = 300
    pause_s: Annotated[
        float,
        Meta(ge=0, description="Seconds that pass at least between two fetches, however many unknown keys tokens name"),
    ] = 10
    timeout_s: Annotated[float, Meta(gt=0, le=60, description="Seconds that a fetch may take")] = 5

    def __post_init__(self) -> None:
        """Raise ValueError for what no single option shows."""
        if not self.algorithms:
            raise ValueError("'algorithms' is missing: those that tokens are signed with, such as [RS256]")
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("give either jwks_file or jwks_url")
        if self.jwks_url is not None:
            url = urlsplit(self.jwks_url)
            if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
                raise ValueError(
                    "jwks_url must begin with https://: who can change the keys on their way can be anybody"
                )
            if any(algorithm.startswith("HS") for algorithm in self.algorithms):
                raise ValueError("HS algorithms need a jwks_file: a shared secret is not for fetching")
