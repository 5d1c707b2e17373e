"""Options of backends in C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from tritonpy import Options


class CBackendOptions(Options, frozen=True):
    """The keys below `backends.NAME` in server.yaml, for a backend NAME in C."""

    collects: ClassVar[str] = "settings"

    environment: Annotated[
        Mapping[str, str],
        Meta(
            description="Environment variables of the worker processes, such as LD_LIBRARY_PATH "
            "for the libraries that the backend needs."
        ),
    ] = {}
    settings: Annotated[
        Mapping[str, str],
        Meta(description="All other keys: what the backend reads as its command-line settings."),
    ] = {}
