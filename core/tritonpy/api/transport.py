"""The interface of transports, which carry the protocols of frontends instead of their listeners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options


class Transport:
    """Carries the protocols of frontends.

    `carries` maps the names of frontends to the classes that serve them. These classes take the
    same options and are created instead of the frontends.
    """

    Options: ClassVar[type[Options]] = NoOptions
    carries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        self.options = options
