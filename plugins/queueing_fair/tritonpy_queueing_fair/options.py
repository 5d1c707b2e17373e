"""What server.yaml says of the tenants of a server."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy import Options


class Tenant(Options, frozen=True):
    """The share of one tenant. A quota of 0 is none."""

    weight: Annotated[float, Meta(gt=0, description="Its share of the instances while others wait too.")] = 1.0
    requests_per_s: Annotated[float, Meta(ge=0, description="Requests per second, over time.")] = 0.0
    burst: Annotated[
        float, Meta(ge=0, description="Requests at once, when it was idle before; 0: those of one second.")
    ] = 0.0
    concurrent: Annotated[int, Meta(ge=0, description="Requests that are open at the same time.")] = 0

    @property
    def most_at_once(self) -> float:
        """How many requests its rate lets through at once, at least one."""
        return max(1.0, self.burst or self.requests_per_s)


class FairOptions(Options, frozen=True):
    """Who shares the server."""

    header: Annotated[
        str,
        Meta(
            description="The header that names the tenant; where it is missing, or none is named, the caller's name does."
        ),
    ] = ""
    default: Annotated[Tenant, Meta(description="Every tenant that is not named.")] = Tenant()
    tenants: Annotated[dict[str, Tenant], Meta(description="Tenants by name.")] = msgspec.field(default_factory=dict)

    def tenant(self, name: str) -> Tenant:
        """Return the share of a tenant."""
        return self.tenants.get(name, self.default)
