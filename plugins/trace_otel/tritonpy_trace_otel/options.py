"""The options under `trace: modes: opentelemetry:` of server.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from tritonpy import Options, StartupError

SERVICE = "triton-inference-server"
_LIMITS = {"bsp_max_queue_size": 2048, "bsp_schedule_delay": 5000, "bsp_max_export_batch_size": 512}


class OpenTelemetryOptions(Options, frozen=True):
    """Options of the mode. Defaults come from OpenTelemetry's environment variables."""

    url: Annotated[
        str,
        Meta(
            description=(
                "URL of the collector; default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or this machine"
            )
        ),
    ] = ""
    resource: Annotated[
        tuple[str, ...],
        Meta(description="Resource attributes KEY=VALUE, which override OTEL_RESOURCE_ATTRIBUTES"),
    ] = ()
    bsp_max_queue_size: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Maximum queued spans, more are dropped; 0: OTEL_BSP_MAX_QUEUE_SIZE or 2048"
            ),
        ),
    ] = 0
    bsp_schedule_delay: Annotated[
        int,
        Meta(
            ge=0, description="Milliseconds between two exports; 0: OTEL_BSP_SCHEDULE_DELAY or 5000"
        ),
    ] = 0
    bsp_max_export_batch_size: Annotated[
        int,
        Meta(
            ge=0, description="Maximum spans per export; 0: OTEL_BSP_MAX_EXPORT_BATCH_SIZE or 512"
        ),
    ] = 0

    def __post_init__(self) -> None:
        """Raise `ValueError` for a resource that is not a KEY=VALUE pair."""
        for pair in self.resource:
            key, equals, _ = pair.partition("=")
            if not (key and equals):
                raise ValueError(f"resource '{pair}' is not of the form KEY=VALUE")


def limits(options: OpenTelemetryOptions) -> Mapping[str, int]:
    """Return the `bsp_` options with defaults.

    Raises `StartupError` for an environment variable that is not a positive number.
    """
    return {
        name: getattr(options, name) or _from_environment(name, default)
        for name, default in _LIMITS.items()
    }


def attributes(options: OpenTelemetryOptions) -> dict[str, str]:
    """Return the resource attributes of the options."""
    given = {key: value for key, _, value in (pair.partition("=") for pair in options.resource)}
    return {"service.name": SERVICE} | given


def _from_environment(name: str, default: int) -> int:
    variable = f"OTEL_{name.upper()}"
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not text.isdecimal() or not int(text):
        raise StartupError(
            f"the environment variable {variable} is '{text}', which is not a positive number"
        )
    return int(text)
