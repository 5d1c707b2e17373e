"""The service `xds.service.orca.v3.OpenRcaService`: a stream of load reports, apart from responses.

Source: github.com/cncf/xds, xds/service/orca/v3/orca.proto.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from tritonpy import InvalidArgument
from tritonpy_load_reports import LoadReporter

ORCA_SERVICE = "xds.service.orca.v3.OpenRcaService"
STREAM_METHOD = "StreamCoreMetrics"
DEFAULT_INTERVAL_S = 1.0
LEAST_INTERVAL_S = 0.1
# Fields 1 and 2 of OrcaLoadReportRequest: a Duration, and texts
_INTERVAL_TAG, _COST_NAMES_TAG = 0x0A, 0x12


class LoadStream:
    """Sends load reports to any number of clients, each at the interval that it requests."""

    def __init__(self, reporter: LoadReporter) -> None:
        self._reporter = reporter
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End all streams."""
        self._closed.set()

    async def reports(self, request: bytes) -> AsyncIterator[bytes]:
        """Yield encoded reports: one at once, and one per interval of at least 100 ms.

        Raises InvalidArgument for an invalid request.
        """
        interval_s = requested_interval_s(request)
        loop = asyncio.get_running_loop()
        while not self._closed.is_set():
            report = await loop.run_in_executor(None, self._reporter.current)
            yield report.encode()
            try:
                await asyncio.wait_for(self._closed.wait(), interval_s)
            except TimeoutError:
                continue


def requested_interval_s(request: bytes) -> float:
    """Return the interval of an OrcaLoadReportRequest in seconds. Raises InvalidArgument."""
    interval = Duration()
    invalid = bool(request) and request[0] not in (_INTERVAL_TAG, _COST_NAMES_TAG)
    try:
        if request[:1] == bytes([_INTERVAL_TAG]):
            interval.ParseFromString(request[2 : 2 + request[1]])
    except (DecodeError, IndexError):
        invalid = True
    if invalid:
        raise InvalidArgument(
            f"unable to parse the request for load reports: its {len(request)} bytes are no valid "
            "message"
        )
    seconds = interval.seconds + interval.nanos / 1e9
    return max(seconds, LEAST_INTERVAL_S) if seconds > 0 else DEFAULT_INTERVAL_S
