"""Fetches a key set over HTTP, in the thread that asks."""

from __future__ import annotations

import urllib.error
import urllib.request
from email.message import Message
from http import HTTPStatus
from typing import IO

LARGEST = 2**20
"""Bytes of a key set; a larger one is refused."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keys come from where the configuration says, and from nowhere else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow nowhere: the answer counts as an error."""


def fetch(url: str, timeout_s: float) -> str:
    """Return what is at `url`. Raises OSError for an answer that is not 200 or does not come, ValueError for one that is too large."""
    opener = urllib.request.build_opener(_NoRedirect)
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - the options allow https alone
    with opener.open(request, timeout=timeout_s) as answer:
        if answer.status != HTTPStatus.OK:
            raise OSError(f"the answer has the status {answer.status}")
        body: bytes = answer.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise ValueError(f"the answer has more than {LARGEST} bytes")
    return body.decode("utf-8")
