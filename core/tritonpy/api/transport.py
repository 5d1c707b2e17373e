"""The interface of transports, which serve frontends' protocols in place of their own listeners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options


class Transport:
    """Serves the protocols of frontends in place of their own listeners.

    `carries` maps the names of frontends to the classes that serve them. These classes take the
    same options and are created instead of the frontends.
    """

    Options: ClassVar[type[Options]] = NoOptions
    carries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        self.options = options
