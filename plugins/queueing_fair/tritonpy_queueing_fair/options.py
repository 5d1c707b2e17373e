"""Options of the sharing "fair"."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy import Options


class Tenant(Options, frozen=True):
    """The share of one tenant. A limit of 0 means no limit."""

    weight: Annotated[
        float, Meta(gt=0, description="Its share of the instances while other tenants wait, too.")
    ] = 1.0
    requests_per_s: Annotated[
        float, Meta(ge=0, description="Average number of requests per second.")
    ] = 0.0
    burst: Annotated[
        float,
        Meta(
            ge=0, description="Requests at once after an idle time; 0: the requests of one second."
        ),
    ] = 0.0
    concurrent: Annotated[int, Meta(ge=0, description="Maximum number of requests in flight.")] = 0
    input_tokens_per_s: Annotated[
        float,
        Meta(ge=0, description="Average number of tokens of prompts per second."),
    ] = 0.0
    output_tokens_per_s: Annotated[
        float,
        Meta(ge=0, description="Average number of generated tokens per second."),
    ] = 0.0
    token_burst_s: Annotated[
        float,
        Meta(gt=0, description="Tokens at once after an idle time: those of this many seconds."),
    ] = 60.0

    @property
    def burst_size(self) -> float:
        """Maximum number of requests at once, at least 1."""
        return max(1.0, self.burst or self.requests_per_s)


class FairOptions(Options, frozen=True):
    """The tenants of the server."""

    header: Annotated[
        str,
        Meta(
            description=(
                "The header with the tenant's name. Without it, the name of the authenticated "
                "client is used."
            )
        ),
    ] = ""
    default: Annotated[Tenant, Meta(description="Share of tenants that are not configured.")] = (
        Tenant()
    )
    tenants: Annotated[dict[str, Tenant], Meta(description="Tenants by name.")] = msgspec.field(
        default_factory=dict
    )

    def tenant(self, name: str) -> Tenant:
        """Return the share of a tenant."""
        return self.tenants.get(name, self.default)
