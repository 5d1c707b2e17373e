"""Whose request it is."""

from __future__ import annotations

from tritonpy import InferRequest, Principal


def tenant_name(request: InferRequest, header: str) -> str:
    """Return the name of the tenant that a request is from; empty where nothing tells.

    A request that a model makes is from the tenant of the request that it is made for.
    """
    while request.parent is not None:
        request = request.parent
    if header:
        for given in (request.headers, request.parameters):
            value = (given or {}).get(header)
            if isinstance(value, str) and value:
                return value
    principal = request.principal
    return principal.account or principal.name if isinstance(principal, Principal) else ""
