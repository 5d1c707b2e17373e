"""The interface of authenticators: they identify clients and decide about their access."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from tritonpy_config.options import NoOptions, Options


class Verb(enum.Enum):
    """The rights: run models, read metadata and statistics, load and unload, administer."""

    INFER = "infer"
    READ = "read"
    MANAGE = "manage"
    ADMIN = "admin"


class Principal(msgspec.Struct, frozen=True):
    """The authenticated identity of a client.

    `name` appears in logs and must not be a secret. `rights` is for the authenticator's own use.
    `account` is the account that the client's requests are charged to if it differs from `name`,
    since several keys may belong to one account.
    """

    name: str
    rights: object = None
    account: str = ""


class Authenticator(ABC):
    """Turns the headers of a request into a principal.

    The server calls it once per request, on the event loop. It must not block. Read files or key
    sets that change while the server runs in a separate thread between `start` and `close`:
    `tritonpy.auth.RefreshedValue` does this.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the principal of a request, or None if credentials are missing or unknown.

        Header names are in lower case. If a header was sent several times, its value is one text
        that contains the values separated by commas. Compare secrets with `hmac.compare_digest`.
        """

    def allows(self, principal: Principal, verb: Verb, model: str) -> bool:
        """Return whether `principal` may do `verb` to `model` (an empty name is the server itself).

        The default allows everything.
        """
        return True

    def start(self) -> None:
        """Start background activity (optional).

        Called once, off the event loop, before any frontend listens.
        """

    def close(self) -> None:
        """Stop background activity (optional); may be called without a previous `start`."""
