"""What a request says of its caller, in the headers that every authenticator may look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LONGEST = 8192
"""Characters of a credential that is looked at; a longer one is nobody's."""


def joined_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name in lower case. One that is given twice is one value with a comma, as in HTTP: no credential has a comma."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of `Authorization: Bearer TOKEN`, None where there is none or it is too long to be one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if token and len(token) <= LONGEST and scheme.lower() == "bearer" else None
