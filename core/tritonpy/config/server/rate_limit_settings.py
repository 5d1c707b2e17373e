"""The section `rate_limit` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class RateLimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which instances may execute at the same time."""

    mode: Annotated[
        str,
        Meta(
            description="off: every idle instance may run; execution_count: an instance needs its resources; or the name of another plugin."
        ),
    ] = "off"
    resources: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        Meta(
            description="Amount of NAME on every device, or of NAME:DEVICE on one; default: as much as the "
            "largest demand of an instance."
        ),
    ] = {}


def parse_resource(key: str) -> tuple[str, int | None]:
    """Return name and device (None: every device) of a key of `resources`.

    Raises ValueError for an invalid key.
    """
    name, colon, device = key.partition(":")
    if not name or (colon and not device.isdecimal()):
        raise ValueError(f"'{key}' is not <resource_name> or <resource_name>:<device>")
    return name, int(device) if colon else None
