"""Whose request it is."""

from __future__ import annotations

from tritonpy import InferRequest, Principal


def tenant_name(request: InferRequest, header: str) -> str:
    """Return the name of the tenant that a request is from; empty where nothing tells. `header` is in lower case.

    A request that a model makes is from the tenant of the request that it is made for.
    """
    while request.parent is not None:
        request = request.parent
    given = (request.headers or {}).get(header)
    if given:
        return given
    principal = request.principal
    return principal.account or principal.name if isinstance(principal, Principal) else ""
