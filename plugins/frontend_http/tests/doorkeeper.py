"""Stands in for the gatekeeper of a server: writes down what it is asked."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import Principal, Unauthenticated, Verb


class Doorkeeper:
    """Admits everybody, or refuses with `refusal`; with `key` only who has it, and only to do what `allowed` lists."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.key = ""
        self.open_doors: tuple[str, ...] = ("health",)
        self.principal = Principal("anna")
        self.asked: list[tuple[Verb, str]] = []
        self.headers: list[Mapping[str, str]] = []

    def guards(self, door: str) -> bool:
        return door not in self.open_doors

    def identify(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        self.headers.append(headers)
        if self.key and headers.get("x-api-key") != self.key:
            raise Unauthenticated("credentials are missing or unknown")
        return self.principal

    def admit(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        self.asked.append((verb, model))
        self.identify(headers, verb, model)
        if self.refusal is not None:
            raise self.refusal
        return self.principal
