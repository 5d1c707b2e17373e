"""The interface of an authenticator: who may call what."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from tritonpy.api.options import NoOptions, Options


class Verb(enum.Enum):
    """The kinds of right: run a model, read metadata and statistics, load and unload, change the server."""

    INFER = "infer"
    READ = "read"
    MANAGE = "manage"
    ADMIN = "admin"


class Principal(msgspec.Struct, frozen=True):
    """Who calls; `name` appears in logs and must be no secret, `rights` are the authenticator's own.

    `account` is whom the caller's requests count for, where that is not `name`: several keys may be of one account.
    """

    name: str
    rights: object = None
    account: str = ""


class Authenticator(ABC):
    """Turns the headers of a request into a principal. Called once per request, on the event loop: it must not block.

    What it reads while the server runs (a file, a key set) it reads in a thread of its own, between `start` and `close`: `tritonpy.Refreshed`.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return who calls, None for missing and unknown credentials; header names are in lower case.

        A header that was sent twice is one text with a comma in it. Compare secrets with `hmac.compare_digest`.
        """

    def allows(self, principal: Principal, verb: Verb, model: str) -> bool:
        """Say whether `principal` may do `verb` to `model` (empty: the server). The default allows everything."""
        return True

    def start(self) -> None:
        """Begin what is done beside requests (optional); called once, off the event loop, before any frontend listens."""

    def close(self) -> None:
        """End it (optional); may come without `start`."""
