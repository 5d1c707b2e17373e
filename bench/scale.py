"""Cost of a request as sizes grow: `python -m bench.scale [--plot FILE]`.

Five series over HTTP and gRPC, ONNX models on the CPU: rows per request, bytes per request,
connections, models, and tensors per request. Every other size stays small. A point is the best of
several loads of one server: requests per second and the server's CPU time per request.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.payloads import Payload
from bench.processes import Running

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IN_FLIGHT = 8
ROWS = (1, 4, 16, 64)
PAYLOADS = tuple(2**power for power in (10, 13, 16, 18, 20, 22, 24, 26))
CONNECTIONS = (1, 10, 100, 1_000, 10_000)
MODELS = (1, 10, 100, 1_000, 5_000)
TENSORS = (1, 4, 16, 64, 256)
SERIES = {
    "rows": "rows per request",
    "payload": "bytes in, and as many out",
    "connections": "connections",
    "models": "models, one of which is used",
    "tensors": "tensors in, and as many out",
}
LARGE = 4 * 2**20  # with payloads from here on, two requests are in flight


@dataclass(frozen=True)
class Point:
    """One measured size of a series."""

    series: str
    protocol: str
    size: int
    load: LoadResult


def measure(series: Sequence[str], seconds: int, repeats: int, python: str) -> Iterator[Point]:
    """Yield the points of the given series as they are measured."""
    for name in series:
        for size, protocol, server, payload, in_flight in _loads(name, python):
            load = clients.wrk if protocol == "HTTP" else clients.h2load
            load(server, payload, in_flight, 1)
            found = [load(server, payload, in_flight, seconds) for _ in range(repeats)]
            yield Point(name, protocol, size, max(found, key=lambda each: each.rate))


def _loads(series: str, python: str) -> Iterator[tuple[int, str, Running, Payload, int]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if series == "models":
            for count in MODELS:
                models.write_many(folder / str(count), count)
                with processes.tritonpy(folder / str(count), python=python) as server:
                    for protocol in ("HTTP", "gRPC"):
                        model = f"add_sub_{count // 2}"
                        yield count, protocol, server, payloads.add_sub(model), IN_FLIGHT
            return
        models.write_onnx(folder)
        models.write_many_tensors(folder, TENSORS)
        with processes.tritonpy(folder, python=python) as server:
            for protocol in ("HTTP", "gRPC"):
                if series == "connections" and protocol == "gRPC":
                    continue  # h2load multiplexes requests on a few connections
                for size, payload, in_flight in _sizes(series):
                    yield size, protocol, server, payload, in_flight


def _sizes(series: str) -> Iterator[tuple[int, Payload, int]]:
    if series == "rows":
        for rows in ROWS:
            data = np.arange(16 * rows, dtype=np.int32).reshape(rows, 16)
            inputs = {"INPUT0": data, "INPUT1": data}
            outputs = {"OUTPUT0": data + data, "OUTPUT1": data - data}
            yield rows, payloads.payload("add_sub", inputs, outputs), IN_FLIGHT
    elif series == "payload":
        for nbytes in PAYLOADS:
            data = np.zeros((1, nbytes // 4), np.float32)
            payload = payloads.payload("identity", {"INPUT0": data}, {"OUTPUT0": data})
            yield nbytes, payload, 2 if nbytes >= LARGE else IN_FLIGHT
    elif series == "connections":
        for count in CONNECTIONS:
            yield count, payloads.add_sub(), count
    else:
        for count in TENSORS:
            data = np.arange(16, dtype=np.int32).reshape(1, 16)
            inputs = {f"INPUT{number}": data for number in range(count)}
            outputs = {f"OUTPUT{number}": data for number in range(count)}
            yield count, payloads.payload(f"tensors_{count}", inputs, outputs), IN_FLIGHT


def table(points: Sequence[Point]) -> str:
    """Return the points as a Markdown table."""
    lines = [
        "| series | size | protocol | requests/s | server CPU us/request |",
        "|---|---|---|---|---|",
    ]
    for point in points:
        rate = f"{point.load.rate:,.{0 if point.load.rate >= 100 else 1}f}"
        cells = (SERIES[point.series], f"{point.size:,}", point.protocol, rate)
        lines.append(f"| {' | '.join(cells)} | {point.load.cpu_us:,.0f} |")
    return "\n".join(lines)


def plot(points: Sequence[Point], file: Path) -> None:
    """Plot the CPU time per request over the size, one panel per series."""
    import matplotlib.pyplot as plt

    found = list(dict.fromkeys(point.series for point in points))
    figure, panels = plt.subplots(
        1,
        len(found),
        figsize=(3.2 * len(found), 3.4),
        layout="constrained",
        squeeze=False,
        sharey=True,  # a cost that does not grow is then a level line
    )
    for series, axes in zip(found, panels[0], strict=True):
        _draw([point for point in points if point.series == series], axes)
        axes.set_xlabel(SERIES[series])
    panels[0][0].set_ylabel("server CPU time per request, us")
    panels[0][0].legend()
    figure.savefig(file, dpi=120)


def _draw(points: Sequence[Point], axes: Axes) -> None:
    for protocol in dict.fromkeys(point.protocol for point in points):
        own = [point for point in points if point.protocol == protocol]
        axes.plot(
            [point.size for point in own],
            [point.load.cpu_us for point in own],
            marker="o",
            label=protocol,
        )
    axes.set_xscale("log", base=2 if points[0].size == PAYLOADS[0] else 10)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)


def main() -> None:
    """Print the points as they are measured, then the table; write the plot if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--series", choices=SERIES, action="append")
    parser.add_argument("--seconds", type=int, default=2, help="length of one load")
    parser.add_argument("--repeats", type=int, default=3, help="loads per point; the best counts")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the server")
    parser.add_argument("--plot", type=Path, help="a file for the plot (needs matplotlib)")
    arguments = parser.parse_args()
    points: list[Point] = []
    for point in measure(
        arguments.series or list(SERIES), arguments.seconds, arguments.repeats, arguments.python
    ):
        points.append(point)
        print(table([point]).splitlines()[-1], flush=True)
    print("", table(points), sep="\n")
    if arguments.plot is not None:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
