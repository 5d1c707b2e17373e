"""A load generator for gRPC whose requests differ: `python -m bench.varied_grpc PORT FILE ...`.

h2load sends one request over and over. Here, each has its own id and its own last 8 bytes of data.
Requests are prepared frames in which only the stream, the id and the data change, so that the
client costs little. It keeps a number of requests in flight on up to 8 connections and prints a
line of JSON: requests, failures, seconds, and the latencies p50 and p99 in us.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from struct import Struct

import uvloop
from hpack import Encoder

from tritonpy_protos import grpc_service_pb2 as pb

METHOD = "/inference.GRPCInferenceService/ModelInfer"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
WINDOW = 2**31 - 1
MIN_RESPONSE_BYTES = 20  # a response with a model name; a failed call has no data
MAX_CONNECTIONS = 8
_HEADER = Struct("!HBBBL")  # length (16 and 8 bits), type, flags, stream
_PREFIX = Struct("!BL")  # of a gRPC message: compressed or not, and its size
_NUMBER = Struct("!L")
_ID = "%012d"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame (RFC 9113, section 4.1)."""
    size = len(payload)
    return _HEADER.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


class Template:
    """The frames of a request; `frames` returns them for a stream and a number."""

    def __init__(self, message: bytes) -> None:
        request = pb.ModelInferRequest.FromString(message)
        request.id = _ID % 0
        body = request.SerializeToString()
        self.message = _PREFIX.pack(0, len(body)) + body
        self._id_at = self.message.index(request.id.encode())

    def frames(self, block: bytes, stream: int, number: int) -> bytes:
        """Return HEADERS with `block`, and DATA; `number` becomes the id and the last bytes."""
        message = bytearray(self.message)
        message[self._id_at : self._id_at + 12] = (_ID % number).encode()
        message[-8:] = number.to_bytes(8, "little")
        return frame(HEADERS, END_HEADERS, stream, block) + frame(
            DATA, END_STREAM, stream, bytes(message)
        )


class Connection(asyncio.Protocol):
    """A connection with `in_flight` requests until `ends_s`; `latencies` are in seconds."""

    def __init__(self, template: Template, in_flight: int, ends_s: float, first: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[float] = []
        self.failures = 0
        self._template, self._in_flight, self._ends_s = template, in_flight, ends_s
        self._encoder = Encoder()
        self._stream, self._number = -1, first
        self._begun: dict[int, float] = {}
        self._sizes: dict[int, int] = {}
        self._rest = b""
        self._block = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Send the preface and the first requests."""
        self._transport = transport
        settings = (4).to_bytes(2, "big") + _NUMBER.pack(WINDOW)  # the window of a stream
        more = frame(8, 0, 0, _NUMBER.pack(WINDOW - 65535))  # and that of the connection
        start = PREFACE + frame(SETTINGS, 0, 0, settings) + more
        transport.write(start + b"".join(self._request() for _ in range(self._in_flight)))

    def _request(self) -> bytes:
        self._stream += 2
        self._number += 1
        if self._number_of_requests() <= 2:  # the first adds the headers to the table of names
            self._block = self._encoder.encode(
                [
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":path", METHOD),
                    (":authority", "127.0.0.1"),
                    ("content-type", "application/grpc"),
                    ("te", "trailers"),
                ]
            )
        self._begun[self._stream] = time.perf_counter()
        return self._template.frames(self._block, self._stream, self._number)

    def _number_of_requests(self) -> int:
        return (self._stream + 1) // 2

    def data_received(self, data: bytes) -> None:
        """Count responses, and send a request for each."""
        data = self._rest + data
        at, end, sent = 0, len(data), []
        now = time.perf_counter()
        while at + 9 <= end:
            high, low, kind, flags, stream = _HEADER.unpack_from(data, at)
            size = high << 8 | low
            if at + 9 + size > end:
                break
            if kind == DATA:
                self._sizes[stream] = self._sizes.get(stream, 0) + size
            elif kind == HEADERS and flags & END_STREAM:
                if self._sizes.pop(stream, 0) < MIN_RESPONSE_BYTES:
                    self.failures += 1
                self.latencies.append(now - self._begun.pop(stream))
                if now < self._ends_s:
                    sent.append(self._request())
            elif kind in {SETTINGS, PING} and not flags & ACK:
                payload = data[at + 9 : at + 9 + size] if kind == PING else b""
                sent.append(frame(kind, ACK, 0, payload))
            elif kind == GOAWAY:
                self.failures += len(self._begun)
                self._begun.clear()
            at += 9 + size
        self._rest = data[at:]
        if sent:
            self._transport.write(b"".join(sent))
        if not self._begun:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end; requests without a response have failed."""
        self.failures += len(self._begun)
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, message: bytes, in_flight: int, seconds: float) -> dict[str, float]:
    """Load the server on `port`; return the figures."""
    template, loop = Template(message), asyncio.get_running_loop()
    count = min(in_flight, MAX_CONNECTIONS)
    begin, first = time.perf_counter(), time.time_ns() // 1_000_000 % 10**8 * 1000
    opened = [
        await loop.create_connection(
            lambda place=place: Connection(  # type: ignore[misc]
                template, in_flight // count, begin + seconds, first + place * 10**10
            ),
            "127.0.0.1",
            port,
        )
        for place in range(count)
    ]
    await asyncio.gather(*(connection.done for _, connection in opened))
    passed = time.perf_counter() - begin
    latencies = sorted(each for _, connection in opened for each in connection.latencies)
    if not latencies:
        return {"count": 0, "failures": 1, "seconds": passed, "p50_us": 0.0, "p99_us": 0.0}
    return {
        "count": len(latencies),
        "failures": sum(connection.failures for _, connection in opened),
        "seconds": passed,
        "p50_us": latencies[len(latencies) // 2] * 1e6,
        "p99_us": latencies[len(latencies) * 99 // 100] * 1e6,
    }


def main() -> None:
    """Read the arguments: port, file of the message, requests in flight, seconds."""
    port, file, in_flight, seconds = sys.argv[1:]
    work = load(int(port), Path(file).read_bytes(), int(in_flight), float(seconds))
    print(json.dumps(uvloop.run(work)))


if __name__ == "__main__":
    main()
