"""The tenant of a request."""

from __future__ import annotations

from tritonpy import InferRequest
from tritonpy.auth import Principal


def tenant_name(request: InferRequest, header: str) -> str:
    """Return the name of a request's tenant, empty if unknown. `header` is in lower case.

    A request from a model belongs to the tenant of its parent request.
    """
    while request.parent is not None:
        request = request.parent
    given = (request.headers or {}).get(header)
    if given:
        return given
    principal = request.principal
    return principal.account or principal.name if isinstance(principal, Principal) else ""
