"""Options of the authenticator `jwt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from tritonpy import Options

Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "ES512", "EdDSA",
]  # fmt: skip
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class JwtOptions(Options, frozen=True):
    """Options under `auth: jwt:` of server.yaml."""

    algorithms: Annotated[
        tuple[Algorithm, ...],
        Meta(description="Accepted signature algorithms; a token cannot add one"),
    ] = ()
    jwks_file: Annotated[Path | None, Meta(description="File with the JSON Web Key Set")] = None
    jwks_url: Annotated[
        str | None, Meta(description="URL of the key set; https, or http on this machine")
    ] = None
    issuer: Annotated[str, Meta(description="Required value of the claim iss")] = ""
    audience: Annotated[str, Meta(description="Required value in the claim aud")] = ""
    leeway_s: Annotated[
        float, Meta(ge=0, le=300, description="Seconds by which clocks may differ")
    ] = 0
    name_claim: Annotated[
        str, Meta(min_length=1, description="The claim with the client's name for logs")
    ] = "sub"
    rights_claim: Annotated[
        str, Meta(min_length=1, description="The claim with the client's rights")
    ] = "tritonpy"
    refresh_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds between two fetches of the URL; a file is checked every second",
        ),
    ] = 300
    pause_s: Annotated[
        float,
        Meta(
            ge=0,
            description=(
                "Minimum seconds between two fetches, however many unknown keys tokens name"
            ),
        ),
    ] = 10
    timeout_s: Annotated[float, Meta(gt=0, le=60, description="Timeout of a fetch in seconds")] = 5

    def __post_init__(self) -> None:
        """Raise `ValueError` for problems that concern several options."""
        if not self.algorithms:
            raise ValueError(
                "'algorithms' is missing: the signature algorithms of tokens, such as [RS256]"
            )
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("give either jwks_file or jwks_url")
        if self.jwks_url is not None:
            url = urlsplit(self.jwks_url)
            if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
                raise ValueError(
                    "jwks_url must begin with https://, because forged keys would allow any "
                    "identity"
                )
            if any(algorithm.startswith("HS") for algorithm in self.algorithms):
                raise ValueError(
                    "HS algorithms need a jwks_file: a shared secret must not be fetched"
                )
