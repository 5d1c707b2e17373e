"""Memory over many requests and load cycles: `python -m bench.soak [--requests N] ...`.

A Theil-Sen line (the median of the slopes between all pairs) is fitted to the samples after the
first quarter, in which pools and caches fill. Memory is flat if the line rises by at most 16 bytes
per request and 32 KiB per cycle. The exit status is 1 if memory is not flat, or if the time ends
before the work is done.

The report also shows processes, open descriptors, and mappings of workers' memory (Linux) left by
the cycles.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median

import psutil

from bench.models import write_onnx, write_python
from bench.payloads import Payload, add_sub
from bench.processes import Running, tritonpy

SAMPLES = 40
CONNECTIONS = 8
BYTES_PER_REQUEST = 16
BYTES_PER_CYCLE = 32 * 1024
MIB = 2**20


@dataclass
class Curve:
    """Samples of (units done, resident bytes); `allowed` is the maximum slope (bytes/`unit`)."""

    unit: str
    allowed: int
    total: int
    samples: list[tuple[int, int]] = field(default_factory=list)

    def slope(self) -> float:
        """Return the slope after the first quarter, in bytes per unit."""
        settled = [sample for sample in self.samples if sample[0] >= self.total / 4]
        return median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(settled, 2))

    def is_complete(self) -> bool:
        """Return whether all units were done."""
        return bool(self.samples) and self.samples[-1][0] >= self.total

    def is_flat(self) -> bool:
        """Return whether memory is flat."""
        return self.is_complete() and self.slope() <= self.allowed

    def lines(self) -> Iterator[str]:
        """Yield a table with the curve drawn next to the numbers."""
        if not self.samples:
            yield f"the time ended before the first sample of {self.unit}s: not flat"
            return
        low, high = min(size for _, size in self.samples), max(size for _, size in self.samples)
        yield f"{self.unit + 's':>10} {'MiB':>8}  {low / MIB:.1f}{'':42}{high / MIB:.1f}"
        for done, size in self.samples:
            column = round(48 * (size - low) / max(high - low, 1))
            yield f"{done:>10} {size / MIB:>8.1f}  {'.' * column}*"
        if not self.is_complete():
            yield f"the time ended before {self.total} {self.unit}s were done: not flat"
            return
        word = "flat" if self.is_flat() else "NOT FLAT"
        yield f"{self.slope():.1f} bytes per {self.unit}, at most {self.allowed} allowed: {word}"


@dataclass(frozen=True)
class ServerResources:
    """Resources of the server other than memory."""

    processes: int
    descriptors: int
    mappings: int

    @classmethod
    def count_now(cls, server: Running) -> ServerResources:
        """Return the current counts of a server."""
        process = psutil.Process(server.pid)
        mapped = (
            Path(f"/proc/{server.pid}/maps").read_text(encoding="utf-8").count("memfd:tritonpy")
        )
        return cls(len(process.children(recursive=True)), process.num_fds(), mapped)

    def line(self, before: ServerResources) -> str:
        """Return the changes since `before` as text."""
        word = "nothing left behind" if self.is_within(before) else "SOMETHING LEFT BEHIND"
        pairs = [
            f"{name} {getattr(before, name)} -> {getattr(self, name)}"
            for name in ("processes", "descriptors", "mappings")
        ]
        return f"{', '.join(pairs)}: {word}"

    def is_within(self, before: ServerResources) -> bool:
        """Return whether no count exceeds `before`."""
        return (
            self.processes <= before.processes
            and self.descriptors <= before.descriptors
            and self.mappings <= before.mappings
        )


def steps(total: int) -> Sequence[int]:
    """Return the units to do between samples; their sum is `total`."""
    count = min(SAMPLES, total)
    bounds = [total * index // count for index in range(count + 1)]
    return [after - before for before, after in pairwise(bounds)]


def soak_requests(server: Running, total: int, deadline: float) -> Curve:
    """Send `total` requests over a few persistent connections."""
    curve, done = Curve("request", BYTES_PER_REQUEST, total), 0
    for count in steps(total):
        if time.monotonic() > deadline:
            break
        asyncio.run(_send(server.http, add_sub(), count))
        done += count
        curve.samples.append((done, server.resident_bytes()))
    return curve


def soak_cycles(server: Running, total: int, deadline: float) -> Curve:
    """Load the model, send a request and unload it, `total` times."""
    curve, done = Curve("cycle", BYTES_PER_CYCLE, total), 0
    for count in steps(total):
        for _ in range(count):
            if time.monotonic() > deadline:
                return curve
            _cycle(server.http, deadline)
        done += count
        curve.samples.append((done, server.resident_bytes()))
    return curve


async def _send(port: int, payload: Payload, count: int) -> None:
    head = (
        f"POST /v2/models/{payload.model}/infer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Inference-Header-Content-Length: {payload.header_length}\r\nContent-Length: "
        f"{len(payload.body)}\r\n\r\n"
    )
    shares = [count // CONNECTIONS + (index < count % CONNECTIONS) for index in range(CONNECTIONS)]
    await asyncio.gather(
        *(_send_some(port, head.encode() + payload.body, share) for share in shares)
    )


async def _send_some(port: int, request: bytes, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(
            int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        )
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(f"the server responded with {head.decode()}{body.decode()}")
    writer.close()
    await writer.wait_closed()


def _cycle(port: int, deadline: float) -> None:
    payload = add_sub()
    _post(port, f"/v2/repository/models/{payload.model}/load")
    asyncio.run(_send(port, payload, 1))
    _post(port, f"/v2/repository/models/{payload.model}/unload")
    while _post(
        port, "/v2/repository/index", {"ready": True}
    ):  # unload returns before the model is gone
        if time.monotonic() > deadline:
            raise TimeoutError(f"'{payload.model}' is still listed as ready after it was unloaded")
        time.sleep(0.005)


def _post(port: int, path: str, body: object = None) -> object:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body or {}).encode(), method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.code} {error.read().decode()}") from None


def main() -> int:
    """Run requests and cycles, and print their curves."""
    parser = argparse.ArgumentParser(
        description="Resident memory over requests and load/unload cycles."
    )
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--backend", choices=["onnxruntime", "python"], default="onnxruntime")
    parser.add_argument("--minutes", type=float, default=10, help="maximum time of the whole run")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        (write_python if options.backend == "python" else write_onnx)(Path(folder))
        with tritonpy(
            Path(folder), "--model-control-mode=explicit", "--load-model=add_sub"
        ) as server:
            curves = [soak_requests(server, options.requests, deadline)]
            _cycle(server.http, deadline)  # from here on, the model is unloaded between samples
            before = ServerResources.count_now(server)
            curves.append(soak_cycles(server, options.cycles, deadline))
            after = ServerResources.count_now(server)
    for curve in curves:
        print(*curve.lines(), "", sep="\n")
    print(after.line(before))
    return 0 if all(curve.is_flat() for curve in curves) and after.is_within(before) else 1


if __name__ == "__main__":
    sys.exit(main())
