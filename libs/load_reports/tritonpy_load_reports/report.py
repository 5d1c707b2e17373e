"""A load report and its encodings (`xds.data.orca.v3.OrcaLoadReport`)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

HTTP_HEADER = b"endpoint-load-metrics"
GRPC_METADATA = "endpoint-load-metrics-bin"
# Field numbers of OrcaLoadReport: github.com/cncf/xds, xds/data/orca/v3/orca_load_report.proto
_CPU, _MEMORY, _RATE, _ERRORS, _NAMED, _APPLICATION = 1, 2, 6, 7, 8, 9


class LoadReportOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys under `load_reports` of a frontend."""

    always: Annotated[
        bool,
        Meta(description="Report the load of the server with every inference response (ORCA)"),
    ] = False


class LoadReport(msgspec.Struct, frozen=True):
    """The load of a server; shares are between 0 and 1, rates are per second.

    `application_utilization` is the share of time in which instances of the busiest model execute,
    plus the share of a request's time in its queue. So it exceeds 1 under overload. `queue_ms` is
    the mean time in the queue, by model.
    """

    cpu_utilization: float = 0.0
    mem_utilization: float = 0.0
    application_utilization: float = 0.0
    rps_fractional: float = 0.0
    eps: float = 0.0
    queue_ms: Mapping[str, float] = {}

    @property
    def named_metrics(self) -> dict[str, float]:
        """The queue times under the names of the report."""
        return {f"queue_ms.{model}": value for model, value in self.queue_ms.items()}

    def http_value(self) -> bytes:
        """Return the value of the HTTP header `endpoint-load-metrics`."""
        fields = {
            name: round(getattr(self, name), 4)
            for name in (
                "cpu_utilization", "mem_utilization", "application_utilization", "rps_fractional",
                "eps",
            )
        }  # fmt: skip
        named = {name: round(value, 3) for name, value in self.named_metrics.items()}
        document = {**fields, "named_metrics": named}
        return b"JSON " + json.dumps(document, separators=(",", ":")).encode()

    def encode(self) -> bytes:
        """Return the message of protobuf."""
        numbers = (
            (_CPU, self.cpu_utilization), (_MEMORY, self.mem_utilization),
            (_RATE, self.rps_fractional), (_ERRORS, self.eps),
            (_APPLICATION, self.application_utilization),
        )  # fmt: skip
        parts = [_double(field, value) for field, value in numbers if value]
        for name, value in self.named_metrics.items():
            text = name.encode()
            entry = b"\x0a" + _varint(len(text)) + text + _double(2, value)
            parts.append(bytes([_NAMED << 3 | 2]) + _varint(len(entry)) + entry)
        return b"".join(parts)


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
