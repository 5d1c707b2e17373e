"""A load generator for gRPC whose requests differ: `python -m bench.varied_grpc PORT FILE ...`.

h2load sends one request over and over. Here, each has its own id and its own last 8 bytes of data,
which are set in a prepared message. Further arguments are the requests in flight, on up to 8
connections, and the seconds. It prints a line of JSON: requests, failures, the first error,
seconds, and the latencies p50 and p99 in us.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path
from struct import Struct

import uvloop

from tritonpy_load_generator.wire.grpc_channel import reset_error, status_error
from tritonpy_load_generator.wire.http2_connection import ClientConnection, ClientStream
from tritonpy_protos import grpc_service_pb2 as pb

HEADERS = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/inference.GRPCInferenceService/ModelInfer"),
    (":authority", "127.0.0.1"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)
MAX_CONNECTIONS = 8
_PREFIX = Struct(">BL")  # of a gRPC message: compressed or not, and its size
_ID = "%012d"


class Template:
    """A request; `body` returns it with a number as its id and its last bytes."""

    def __init__(self, message: bytes) -> None:
        request = pb.ModelInferRequest.FromString(message)
        request.id = _ID % 0
        content = request.SerializeToString()
        self._body = _PREFIX.pack(0, len(content)) + content
        self._id_at = self._body.index(request.id.encode())

    def body(self, number: int) -> bytes:
        """Return the gRPC message, with its prefix."""
        body = bytearray(self._body)
        body[self._id_at : self._id_at + 12] = (_ID % number).encode()
        body[-8:] = number.to_bytes(8, "little")
        return bytes(body)


class Load:
    """Requests until `ends_s`, and what became of them; `latencies` are in seconds."""

    def __init__(self, template: Template, ends_s: float) -> None:
        self.latencies: list[float] = []
        self.failures = 0
        self.first_error = ""
        self._template, self._ends_s = template, ends_s
        self._number = time.time_ns() // 1_000_000 % 10**8 * 1000
        self._in_flight = 0
        self.finished = asyncio.Event()

    def start(self, connection: ClientConnection) -> None:
        """Send a request, unless the time is over."""
        if time.perf_counter() < self._ends_s and connection.usable:
            self._number += 1
            self._in_flight += 1
            call = _Call(partial(self._ended, connection))
            connection.start(call, self._template.body(self._number), end=True)
        elif not self._in_flight:
            self.finished.set()

    def _ended(self, connection: ClientConnection, call: _Call, error: str | None) -> None:
        self._in_flight -= 1
        self.latencies.append(time.perf_counter() - call.begun_s)
        if error is not None:
            self.failures += 1
            self.first_error = self.first_error or error
        self.start(connection)


class _Call(ClientStream):
    reads_data = False

    def __init__(self, done: partial[None]) -> None:
        super().__init__()
        self.begun_s = time.perf_counter()
        self._done = done
        self._error: str | None = None

    def headers_received(self, headers: dict[str, str]) -> None:
        self._error = self._error or status_error(headers)

    def ended(self, error: str | None) -> None:
        self._done(self, self._error if error is None else reset_error(error))


async def run(port: int, message: bytes, in_flight: int, seconds: float) -> dict[str, object]:
    """Load the server on `port`; return the figures."""
    count, loop = min(in_flight, MAX_CONNECTIONS), asyncio.get_running_loop()
    connections = []
    for _ in range(count):
        _, connection = await loop.create_connection(
            partial(ClientConnection, HEADERS), "127.0.0.1", port
        )
        await connection.ready
        connections.append(connection)
    begin_s = time.perf_counter()
    load = Load(Template(message), begin_s + seconds)
    for connection in connections * (in_flight // count):
        load.start(connection)
    await load.finished.wait()
    passed_s = time.perf_counter() - begin_s
    for connection in connections:
        connection.close()
    latencies = sorted(load.latencies)
    return {
        "count": len(latencies),
        "failures": load.failures,
        "error": load.first_error,
        "seconds": passed_s,
        "p50_us": latencies[len(latencies) // 2] * 1e6,
        "p99_us": latencies[len(latencies) * 99 // 100] * 1e6,
    }


def main() -> None:
    """Read the arguments: port, file of the message, requests in flight, seconds."""
    port, file, in_flight, seconds = sys.argv[1:]
    work = run(int(port), Path(file).read_bytes(), int(in_flight), float(seconds))
    print(json.dumps(uvloop.run(work)))


if __name__ == "__main__":
    main()
