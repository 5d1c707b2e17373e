"""Authorization of HTTP calls, and the headers that a request keeps.

Imported only if the server authenticates, restricts APIs, forwards headers or keeps headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tritonpy import InferRequest, NotFound, PermissionDenied, TritonError
from tritonpy.auth import (
    ApiCategory,
    Authorizer,
    HeaderForwarding,
    Principal,
    Restriction,
    Restrictions,
    Verb,
    joined_headers,
    keep_headers,
)
from tritonpy.frontend import Operation
from tritonpy_http_api.operation_paths import verbs_by_path

RawHeaders = Iterable[tuple[bytes, bytes]]

_MODEL = r"/v2/models/(?P<model>[^/]+)(?:/versions/[0-9]+)?"
_PATHS = (
    (r"/v2/health/(?:live|ready)", ApiCategory.HEALTH, Verb.READ),
    (r"/v2", ApiCategory.METADATA, Verb.READ),
    (r"/v2/models/stats", ApiCategory.STATISTICS, Verb.READ),
    (f"{_MODEL}/ready", ApiCategory.HEALTH, Verb.READ),
    (f"{_MODEL}/(?:infer|generate|generate_stream)", ApiCategory.INFERENCE, Verb.INFER),
    (f"{_MODEL}/config", ApiCategory.MODEL_CONFIG, Verb.READ),
    (f"{_MODEL}/stats", ApiCategory.STATISTICS, Verb.READ),
    (f"{_MODEL}/trace/setting", ApiCategory.TRACE, Verb.ADMIN),
    (_MODEL, ApiCategory.METADATA, Verb.READ),
    (r"/v2/trace/setting", ApiCategory.TRACE, Verb.ADMIN),
    (r"/v2/logging", ApiCategory.LOGGING, Verb.ADMIN),
    (r"/v2/repository(?:/[^/]+)?/index", ApiCategory.MODEL_REPOSITORY, Verb.READ),
    (
        r"/v2/repository(?:/[^/]+)?/models/(?P<model>[^/]+)/(?:load|unload)",
        ApiCategory.MODEL_REPOSITORY,
        Verb.MANAGE,
    ),
    (
        r"/v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/(?:status|register|unregister)",
        ApiCategory.SHARED_MEMORY,
        Verb.ADMIN,
    ),
    (r"/schema(?:/.*)?", ApiCategory.METADATA, Verb.READ),
)
ROUTES = tuple((re.compile(pattern), category, verb) for pattern, category, verb in _PATHS)
"""Patterns of unescaped paths with the category and the right of each; the first match counts."""


class CallContext:
    """The principal and the headers of one call. `refusal` is set if the call is denied."""

    __slots__ = ("_forwarding", "_headers", "_kept_headers", "principal", "refusal")

    def __init__(
        self,
        headers: Sequence[tuple[str, str]],
        forwarding: HeaderForwarding | None,
        kept_headers: frozenset[str],
    ) -> None:
        self.principal: Principal | None = None
        self.refusal: TritonError | None = None
        self._headers = headers
        self._forwarding = forwarding
        self._kept_headers = kept_headers

    def apply_principal(self, request: InferRequest) -> None:
        """Set the principal and the kept headers of `request`."""
        request.principal = self.principal
        if self._kept_headers:
            keep_headers(self._text_headers(), self._kept_headers, request)

    def apply(self, request: InferRequest) -> None:
        """Set the principal, the kept headers and the forwarded headers of `request`.

        Raises InvalidArgument if a forwarded header has a reserved name.
        """
        self.apply_principal(request)
        if self._forwarding is not None:
            self._forwarding.apply(self._text_headers(), request)

    def _text_headers(self) -> Iterable[tuple[str, str]]:
        return ((name, _to_text(value)) for name, value in self._headers)


class HttpAccess:
    """Authorizes the calls of one frontend.

    A path that is neither in `ROUTES` nor in `operations` gets the error NotFound.
    """

    def __init__(
        self,
        restrictions: Sequence[Restriction],
        forward_pattern: str,
        authorizer: Authorizer | None,
        kept_headers: frozenset[str] = frozenset(),
        count_denial: Callable[[ApiCategory], None] | None = None,
        operations: Sequence[Operation] = (),
    ) -> None:
        self._operations = verbs_by_path(operations)
        self._restrictions = Restrictions(restrictions, note=count_denial)
        self._forwarding = HeaderForwarding(forward_pattern) if forward_pattern else None
        self._kept_headers = kept_headers
        self._authorizer = authorizer

    def check_request(self, scope: Mapping[str, Any]) -> TritonError | None:
        """Return the error of a denied call, or None.

        Sets `scope["state"]["context"]`, a `CallContext`.
        """
        pairs = _decode_headers(scope["headers"])
        context = scope["state"]["context"] = CallContext(
            pairs, self._forwarding, self._kept_headers
        )
        try:
            context.principal = self._authorize_path(scope, pairs)
        except TritonError as error:
            return error
        return None

    def check_inference(self, model: str, headers: RawHeaders) -> CallContext:
        """Return the context of an inference call of `model`.

        `headers` are as the client sent them.
        """
        pairs = _decode_headers(headers)
        context = CallContext(pairs, self._forwarding, self._kept_headers)
        try:
            context.principal = self._authorize(ApiCategory.INFERENCE, Verb.INFER, model, pairs)
        except TritonError as error:
            context.refusal = error
        return context

    def _authorize_path(
        self, scope: Mapping[str, Any], headers: Sequence[tuple[str, str]]
    ) -> Principal | None:
        path = scope["path"]
        # With an escaped slash, splitting before and after unescaping yields different models.
        if b"%2f" not in scope["raw_path"].lower():
            for pattern, category, verb in ROUTES:
                match = pattern.fullmatch(path)
                if match is not None:
                    return self._authorize(
                        category, verb, match.groupdict().get("model", ""), headers
                    )
            for pattern, verbs in self._operations:
                if pattern.fullmatch(path):
                    return self._authorize(
                        ApiCategory.OPERATIONS, verbs.get(scope["method"], Verb.ADMIN), "", headers
                    )
        raise NotFound("Not Found")

    def _authorize(
        self, category: ApiCategory, verb: Verb, model: str, headers: Sequence[tuple[str, str]]
    ) -> Principal | None:
        missing = self._restrictions.missing(category, headers)
        if missing is not None:
            raise PermissionDenied(f"This API is restricted, expecting header '{missing}'")
        authorizer = self._authorizer
        if authorizer is None or (
            category is ApiCategory.HEALTH and not authorizer.guards("health")
        ):
            return None
        return authorizer.admit(joined_headers(headers), verb, model)


def _decode_headers(headers: RawHeaders) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        for name, value in headers
    ]


def _to_text(value: str) -> str:
    """Return a header value as text: UTF-8 if it is valid, Latin-1 otherwise."""
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
