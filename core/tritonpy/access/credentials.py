"""Credentials of a request, from headers that every authenticator may read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_CREDENTIAL_LENGTH = 8192
"""The longest accepted credential, in characters. Longer ones match no principal."""


def joined_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name in lower case.

    Values of a repeated header are joined by commas, as in HTTP.

    A credential that is sent twice is invalid, since no valid one contains a comma.
    """
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of `Authorization: Bearer TOKEN`, or None if it is missing or too long."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if token and len(token) <= MAX_CREDENTIAL_LENGTH and scheme.lower() == "bearer" else None
