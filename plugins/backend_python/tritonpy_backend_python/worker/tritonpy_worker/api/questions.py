"""Questions to the server, and how its refusals reach the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import TritonModelException

if TYPE_CHECKING:
    from ..host import Host


def ask(host: Host, failure: str, verb: str, arguments: dict[str, Any]) -> Any:
    """Ask and wait. Raises TritonModelException that begins with `failure` where the server refuses."""
    try:
        return host.ask(verb, arguments)
    except TritonModelException as error:
        raise refusal(host, failure, str(error)) from None


def refusal(host: Host, failure: str, reason: str) -> TritonModelException:
    """Return what a model is told when its server, or a rule that its server would apply, says no."""
    return TritonModelException(f"{failure}: Failed to process the request for model '{host.name}', message: {reason}")
