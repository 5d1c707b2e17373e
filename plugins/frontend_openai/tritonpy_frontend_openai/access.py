"""Authorization of calls: restricted APIs, API keys and tokens, and rights per model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tritonpy import InferRequest
from tritonpy.auth import (
    ApiCategory,
    Principal,
    Restriction,
    RestrictionDenials,
    Restrictions,
    Verb,
    keep_headers,
)
from tritonpy.frontend import FrontendContext
from tritonpy_frontend_openai.errors import RestrictedApi


class Caller:
    """The principal of one call, and the headers that its requests keep."""

    def __init__(
        self,
        principal: Principal | None,
        headers: Mapping[str, str],
        kept_headers: frozenset[str],
    ) -> None:
        self._principal = principal
        self._headers = headers
        self._kept_headers = kept_headers

    @property
    def owner(self) -> str:
        """The name of the principal, "" without authentication."""
        return self._principal.name if self._principal is not None else ""

    def apply(self, request: InferRequest) -> None:
        """Set the principal and the kept headers of a request."""
        request.principal = self._principal
        if self._kept_headers:
            keep_headers(self._headers.items(), self._kept_headers, request)


class Access:
    """Checks each call before the server reveals anything.

    Every method raises RestrictedApi, Unauthenticated or PermissionDenied for a call that is not
    allowed.
    """

    def __init__(self, restrictions: Sequence[Restriction], context: FrontendContext) -> None:
        note: Callable[[ApiCategory], None] | None = None
        if restrictions:
            note = RestrictionDenials(context.metrics, "openai", context.log).note
        self._restrictions = Restrictions(restrictions, note=note)
        self._authorizer = context.authorizer
        self._kept_headers = context.kept_headers

    def check_inference(self, headers: Mapping[str, str]) -> None:
        """Check an inference call before its body, which names the model, is read."""
        self._check_restriction(ApiCategory.INFERENCE, headers)
        if self._authorizer is not None:
            self._authorizer.identify(headers, Verb.INFER)

    def owner(self, headers: Mapping[str, str]) -> str:
        """Return the name of the caller of a call about its own responses."""
        self._check_restriction(ApiCategory.INFERENCE, headers)
        if self._authorizer is None:
            return ""
        return self._authorizer.identify(headers, Verb.INFER).name

    def admit_inference(self, model: str, headers: Mapping[str, str]) -> Caller:
        """Return the caller of an inference with `model`."""
        principal = None
        if self._authorizer is not None:
            principal = self._authorizer.admit(headers, Verb.INFER, model)
        return Caller(principal, headers, self._kept_headers)

    def admit_reading(self, model: str, headers: Mapping[str, str]) -> None:
        """Check a call that reads about a model, or about all models if the name is empty."""
        self._check_restriction(ApiCategory.MODEL_REPOSITORY, headers)
        if self._authorizer is not None:
            self._authorizer.admit(headers, Verb.READ, model)

    def admit_control(self, model: str, headers: Mapping[str, str]) -> None:
        """Check a call that loads or unloads a model."""
        self._check_restriction(ApiCategory.MODEL_REPOSITORY, headers)
        if self._authorizer is not None:
            self._authorizer.admit(headers, Verb.MANAGE, model)

    def check_health(self, headers: Mapping[str, str]) -> None:
        """Check a health probe."""
        self._check_restriction(ApiCategory.HEALTH, headers)
        if self._authorizer is not None and self._authorizer.guards("health"):
            self._authorizer.admit(headers, Verb.READ)

    def _check_restriction(self, category: ApiCategory, headers: Mapping[str, str]) -> None:
        missing = self._restrictions.missing(category, headers.items())
        if missing is not None:
            raise RestrictedApi(
                f"This API is restricted, expecting header '{missing}' with valid value",
                401,
                code="invalid_auth",
            )
