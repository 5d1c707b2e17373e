"""A fake authorizer that records its checks."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import Unauthenticated
from tritonpy.auth import Principal, Verb


class RecordingAuthorizer:
    """Authorizes every call, or raises `refusal`. With `key`, calls need that API key."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.key = ""
        self.public_endpoints: tuple[str, ...] = ("health",)
        self.principal = Principal("anna")
        self.checks: list[tuple[Verb, str]] = []
        self.headers: list[Mapping[str, str]] = []

    def guards(self, endpoint: str) -> bool:
        return endpoint not in self.public_endpoints

    def identify(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        self.headers.append(headers)
        if self.key and headers.get("x-api-key") != self.key:
            raise Unauthenticated("credentials are missing or unknown")
        return self.principal

    def admit(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        self.checks.append((verb, model))
        self.identify(headers, verb, model)
        if self.refusal is not None:
            raise self.refusal
        return self.principal
