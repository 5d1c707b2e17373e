"""Cost of ten thousand idle connections: `python -m bench.idle [--transport grpcio]`.

Measures the memory per idle connection and their effect on the throughput of 32 active ones. Two
equal servers run in interleaved pairs, one of them with idle connections, each after one response.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import clients, models, payloads, processes
from bench.comparison_rows import TRANSPORTS
from bench.processes import Running
from bench.program import OWN_FLAGS, parser_of, run
from bench.rows import Case
from tritonpy_serve.command import allow_many_open_files

IN_FLIGHT = 32
GOAL = 0.9
SETTLE_S = 2.0  # until both ends have finished their work after a response
ADDRESSES = 50  # client addresses: one address has too few ports
TIMEOUT_S = 60
_HTTP = b"GET /v2/health/live HTTP/1.1\r\nHost: bench\r\n\r\n"
_HTTP2 = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
)  # the preface and empty SETTINGS
LOADS = {"http": clients.wrk, "grpc": clients.h2load}


def main() -> int:
    """Measure each transport and protocol; return 1 if the throughput fell too much."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--transport", choices=TRANSPORTS, action="append", help="only these transports"
    )
    parser.add_argument("--connections", type=int, default=10_000)
    arguments = parser.parse_args()
    allow_many_open_files()
    status = 0
    for transport in arguments.transport or ("uvicorn", "h2"):
        for protocol in TRANSPORTS[transport]:
            with _two_servers(transport) as (busy, quiet), contextlib.ExitStack() as stack:
                before = busy.resident_bytes()
                for connection in _connect(busy, protocol, arguments.connections):
                    stack.enter_context(connection)
                time.sleep(SETTLE_S)
                each = (busy.resident_bytes() - before) / arguments.connections
                name = (
                    f"{protocol} on {transport}, {IN_FLIGHT} in flight with "
                    f"{arguments.connections:,} idle connections"
                )
                print(f"{name}: {each:,.0f} bytes of memory each", flush=True)
                case = Case(name, "none idle", _load(protocol), GOAL, subject="idle connections")
                status |= run(arguments, [case], {"idle connections": busy, "none idle": quiet})
    return status


@contextlib.contextmanager
def _two_servers(transport: str) -> Iterator[tuple[Running, Running]]:
    flags = OWN_FLAGS.get(transport, ())
    with tempfile.TemporaryDirectory() as folder:
        models.write_onnx(Path(folder))
        with (
            processes.tritonpy(Path(folder), *flags) as one,
            processes.tritonpy(Path(folder), *flags) as other,
        ):
            for server in (one, other):  # excludes allocations of the first requests
                for load in LOADS.values():
                    load(server, payloads.add_sub(), IN_FLIGHT, 1)
            yield one, other


def _load(protocol: str) -> object:
    return lambda server, seconds: LOADS[protocol](server, payloads.add_sub(), IN_FLIGHT, seconds)


def _connect(server: Running, protocol: str, count: int) -> Iterator[socket.socket]:
    port, hello = (server.http, _HTTP) if protocol == "http" else (server.grpc, _HTTP2)
    for number in range(count):
        source = (f"127.0.0.{2 + number % ADDRESSES}", 0)
        connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=source)
        connection.sendall(hello)
        if not connection.recv(1024):
            raise ConnectionError(f"{server.name} closed connection {number}")
        yield connection


if __name__ == "__main__":
    sys.exit(main())
