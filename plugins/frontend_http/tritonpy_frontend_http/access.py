"""Who may make which HTTP call, and what a request keeps of its headers. Made only where something restricts, forwards, keeps or authenticates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tritonpy import (
    ApiCategory,
    Gatekeeper,
    HeaderForwarding,
    InferRequest,
    NotFound,
    Operation,
    PermissionDenied,
    Principal,
    Restriction,
    Restrictions,
    TritonError,
    Verb,
    joined_headers,
    keep_headers,
)
from tritonpy_frontend_http.operation_paths import verbs_by_path

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
    (r"/v2/repository(?:/[^/]+)?/models/(?P<model>[^/]+)/(?:load|unload)", ApiCategory.MODEL_REPOSITORY, Verb.MANAGE),
    (
        r"/v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/(?:status|register|unregister)",
        ApiCategory.SHARED_MEMORY,
        Verb.ADMIN,
    ),
    (r"/schema(?:/.*)?", ApiCategory.METADATA, Verb.READ),
)
ROUTES = tuple((re.compile(pattern), category, verb) for pattern, category, verb in _PATHS)
"""Every path, unescaped, with its category and the right that it takes; the first that matches counts."""


class Visit:
    """What was found out about one inference call when its headers had come. `refusal` is set where it ends there."""

    __slots__ = ("_forwarding", "_headers", "_kept_headers", "principal", "refusal")

    def __init__(
        self, headers: Sequence[tuple[str, str]], forwarding: HeaderForwarding | None, kept_headers: frozenset[str]
    ) -> None:
        self.principal: Principal | None = None
        self.refusal: TritonError | None = None
        self._headers = headers
        self._forwarding = forwarding
        self._kept_headers = kept_headers

    def keep(self, request: InferRequest) -> None:
        """Put the caller and the headers that the server keeps into `request`."""
        request.principal = self.principal
        if self._kept_headers:
            keep_headers(self._readable_headers(), self._kept_headers, request)

    def apply(self, request: InferRequest) -> None:
        """Do that, and add the forwarded headers; raises InvalidArgument for a reserved name."""
        self.keep(request)
        if self._forwarding is not None:
            self._forwarding.apply(self._readable_headers(), request)

    def _readable_headers(self) -> Iterable[tuple[str, str]]:
        return ((name, _readable(value)) for name, value in self._headers)


class HttpAccess:
    """The doorkeeper of one frontend. A path that `ROUTES` lacks does not exist."""

    def __init__(
        self,
        restrictions: Sequence[Restriction],
        forward_pattern: str,
        gatekeeper: Gatekeeper | None,
        kept_headers: frozenset[str] = frozenset(),
        note: Callable[[ApiCategory], None] | None = None,
        operations: Sequence[Operation] = (),
    ) -> None:
        self._operations = verbs_by_path(operations)
        self._restrictions = Restrictions(restrictions, note=note)
        self._forwarding = HeaderForwarding(forward_pattern) if forward_pattern else None
        self._kept_headers = kept_headers
        self._gatekeeper = gatekeeper

    def refusal(self, scope: Mapping[str, Any]) -> TritonError | None:
        """Return why the call of an ASGI scope may not go on; where it may, `scope["state"]["visit"]` is what is known of it."""
        pairs = _decoded(scope["headers"])
        visit = scope["state"]["visit"] = Visit(pairs, self._forwarding, self._kept_headers)
        try:
            visit.principal = self._enter(scope, pairs)
        except TritonError as error:
            return error
        return None

    def visit(self, model: str, headers: RawHeaders) -> Visit:
        """Return what is known of an inference call of `model`; `headers` as they were sent."""
        pairs = _decoded(headers)
        visit = Visit(pairs, self._forwarding, self._kept_headers)
        try:
            visit.principal = self._admit(ApiCategory.INFERENCE, Verb.INFER, model, pairs)
        except TritonError as error:
            visit.refusal = error
        return visit

    def _enter(self, scope: Mapping[str, Any], headers: Sequence[tuple[str, str]]) -> Principal | None:
        path = scope["path"]
        # With an escaped slash, whoever splits the path before it is unescaped sees another model than whoever splits it afterwards.
        if b"%2f" not in scope["raw_path"].lower():
            for pattern, category, verb in ROUTES:
                match = pattern.fullmatch(path)
                if match is not None:
                    return self._admit(category, verb, match.groupdict().get("model", ""), headers)
            for pattern, verbs in self._operations:
                if pattern.fullmatch(path):
                    return self._admit(ApiCategory.OPERATIONS, verbs.get(scope["method"], Verb.ADMIN), "", headers)
        raise NotFound("Not Found")

    def _admit(
        self, category: ApiCategory, verb: Verb, model: str, headers: Sequence[tuple[str, str]]
    ) -> Principal | None:
        missing = self._restrictions.missing(category, headers)
        if missing is not None:
            raise PermissionDenied(f"This API is restricted, expecting header '{missing}'")
        gatekeeper = self._gatekeeper
        if gatekeeper is None or (category is ApiCategory.HEALTH and not gatekeeper.guards("health")):
            return None
        return gatekeeper.admit(joined_headers(headers), verb, model)


def _decoded(headers: RawHeaders) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in headers]


def _readable(value: str) -> str:
    """Return a value that is no UTF-8 as Latin-1, which HTTP's headers were once: models take text."""
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
