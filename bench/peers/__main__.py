"""tritonpy beside other Python inference servers: `python -m bench.peers [--plot FILE]`.

The same ONNX model (add/sub of 16 integers, one intra-op thread) is behind MLServer, LitServe,
BentoML, Ray Serve, mosec and tritonpy. All batch up to 8 requests, and none waits longer than it
must for others. wrk sends JSON over HTTP; every request has its own data. The two servers of a row
alternate in one run. Each peer gets an environment of its own below `.bench/`, which later runs
reuse; `--compiled` compiles tritonpy's request path.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import baseline, clients, models, processes
from bench.clients import LoadResult
from bench.processes import Running
from bench.rows import Case, Row, line, measure, table
from tritonpy_testing import free_port

FOLDER = Path(__file__).parent
IN_FLIGHT = (1, 8, 32)
START_S = 120  # Ray starts several processes
FIRST = 7  # the first integer of the request that checks a server
VARIED = "@"  # stands for an integer that differs in every request
ROW = [VARIED, *range(1, 16)]
SUMS = [2 * FIRST, *range(2, 32, 2)]


@dataclass(frozen=True)
class Peer:
    """A server: its package, the path of the model, a request, and where the sums are in a reply.

    `goals` are the wanted ratios of the rates, by requests in flight.
    """

    requirement: str
    path: str
    request: Any
    sums: Callable[[Any], Any]
    goals: dict[int, float]

    def body(self) -> str:
        """Return the JSON of a request, in which `VARIED` stands for an integer."""
        return json.dumps(self.request).replace(f'"{VARIED}"', VARIED)


def _v2() -> dict[str, Any]:
    described = {"datatype": "INT32", "shape": [1, 16], "data": ROW}
    return {"inputs": [{"name": name, **described} for name in ("INPUT0", "INPUT1")]}


def _first_output(reply: Any) -> Any:
    return next(each["data"] for each in reply["outputs"] if each["name"] == "OUTPUT0")


PLAIN = {"INPUT0": ROW, "INPUT1": ROW}
V2_PATH = "/v2/models/add_sub/infer"
PYTHON_GOALS = {1: 4.0, 8: 8.0, 32: 15.0}
OURS = Peer("tritonpy", V2_PATH, _v2(), _first_output, {})
PEERS = {
    "litserve": Peer("litserve", "/predict", PLAIN, lambda reply: reply["OUTPUT0"], PYTHON_GOALS),
    "mlserver": Peer("mlserver", V2_PATH, _v2(), _first_output, PYTHON_GOALS),
    "bentoml": Peer(
        "bentoml", "/predict", {"inputs": [[ROW, ROW]]}, lambda reply: reply[0][0], PYTHON_GOALS
    ),
    "ray": Peer("ray[serve]", "/", PLAIN, lambda reply: reply["OUTPUT0"], PYTHON_GOALS),
    "mosec": Peer("mosec", "/inference", PLAIN, lambda reply: reply["OUTPUT0"], {32: 3.4}),
}


def environment_of(name: str) -> str:
    """Return the interpreter of an environment with a peer; create it if it is missing."""
    folder = baseline.FOLDER / "peers" / name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {PEERS[name].requirement} into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        packages = [PEERS[name].requirement, "onnxruntime", "numpy"]
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "installed").touch()
    return str(python)


@contextlib.contextmanager
def serving(name: str, model: Path) -> Iterator[Running]:
    """Run a peer; yield when it answers correctly."""
    port = free_port()
    command = [environment_of(name), str(FOLDER / f"serve_{name}.py"), str(model), str(port)]
    with processes.process([*command, str(free_port())], lambda: wait(PEERS[name], port)) as pid:
        yield Running(name, pid, port)


def wait(peer: Peer, port: int) -> None:
    """Wait until a server returns the right sums. Raises TimeoutError."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{peer.path}",
        peer.body().replace(VARIED, str(FIRST)).encode(),
        {"Content-Type": "application/json"},
    )
    deadline = time.monotonic() + START_S
    found: object = None
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(request, timeout=30) as response:
                found = peer.sums(json.load(response))
            if found == SUMS:
                return
        time.sleep(0.1)
    raise TimeoutError(f"no right answer on port {port} in {START_S} s; the last was {found}")


def load_of(peers: dict[str, Peer], in_flight: int) -> Callable[[Running, int], LoadResult]:
    """Return the load of JSON requests on a server, whose name is a key of `peers`."""

    def load(server: Running, seconds: int) -> LoadResult:
        peer = peers[server.name]
        return clients.wrk_json(server, peer.path, peer.body(), VARIED, in_flight, seconds)

    return load


def rows(names: Sequence[str], python: str, pairs: int, seconds: int) -> Iterator[Row]:
    """Yield a row per peer and number of requests in flight, as they are measured."""
    with tempfile.TemporaryDirectory() as folder:
        models.write_onnx(Path(folder))
        model = Path(folder, "add_sub/1/model.onnx")
        with processes.tritonpy(Path(folder), python=python) as ours:
            wait(OURS, ours.http)
            for name in names:
                with serving(name, model) as theirs:
                    for in_flight in IN_FLIGHT:
                        title = f"ONNX add/sub, JSON over HTTP, {in_flight} in flight"
                        load = load_of({"tritonpy": OURS, name: PEERS[name]}, in_flight)
                        case = Case(title, name, load, PEERS[name].goals.get(in_flight))
                        yield measure(case, ours, theirs, pairs, seconds)


def plot(found: Sequence[Row], file: Path) -> None:
    """Plot the rate of tritonpy over that of each peer, a bar per number in flight."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.case.other for row in found))
    figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for place, in_flight in enumerate(IN_FLIGHT):
        ratios = [row.verdict.ratio for row in found if f" {in_flight} in flight" in row.case.name]
        positions = [index + 0.27 * (place - 1) for index in range(len(names))]
        bars = axes.bar(positions, ratios, 0.25, label=f"{in_flight} in flight")
        axes.bar_label(bars, [f"{ratio:.1f}" for ratio in ratios], fontsize=8)
    axes.set_xticks(range(len(names)), names)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("requests/s, tritonpy / peer")
    axes.legend()
    figure.savefig(file, dpi=120)


def main() -> int:
    """Print the rows as they are measured, then the table; return 1 if a row fell short."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=PEERS, action="append", help="only this one")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="length of one run")
    parser.add_argument("--python", default="", help="interpreter of tritonpy")
    parser.add_argument("--plot", type=Path, help="a file for the chart (needs matplotlib)")
    arguments = parser.parse_args()
    python = arguments.python or sys.executable
    found: list[Row] = []
    for row in rows(arguments.peer or list(PEERS), python, arguments.pairs, arguments.seconds):
        found.append(row)
        print(line(row), flush=True)
    print("", table(found), sep="\n")
    if arguments.plot is not None:
        plot(found, arguments.plot)
    return 1 if any(row.verdict.word == "short" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
