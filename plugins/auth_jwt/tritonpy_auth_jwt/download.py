"""Download of a key set over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from email.message import Message
from http import HTTPStatus
from typing import IO

MAX_BYTES = 2**20
"""Maximum size of a key set. Larger ones are rejected."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keys come only from the configured URL, so redirects are errors."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Follow no redirect. The response then counts as an error."""


def download(url: str, timeout_s: float) -> str:
    """Return the text at `url`.

    Raises `OSError` for a status other than 200 or a failed connection, `ValueError` for a response
    that is too large.
    """
    opener = urllib.request.build_opener(_NoRedirect)
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - the options allow https alone
    with opener.open(request, timeout=timeout_s) as response:
        if response.status != HTTPStatus.OK:
            raise OSError(f"the response has the status {response.status}")
        body: bytes = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise ValueError(f"the response has more than {MAX_BYTES} bytes")
    return body.decode("utf-8")
