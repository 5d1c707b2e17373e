"""Queries to the server, and their errors in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import TritonModelException

if TYPE_CHECKING:
    from ..host import Host


def query(host: Host, failure: str, verb: str, arguments: dict[str, Any]) -> Any:
    """Query the server and wait.

    Raises `TritonModelException` with the prefix `failure` on an error.
    """
    try:
        return host.query(verb, arguments)
    except TritonModelException as error:
        raise refusal(host, failure, str(error)) from None


def refusal(host: Host, failure: str, reason: str) -> TritonModelException:
    """Return the exception for `reason`, an error of the server or of a check on its behalf."""
    return TritonModelException(
        f"{failure}: Failed to process the request for model '{host.name}', message: {reason}"
    )
