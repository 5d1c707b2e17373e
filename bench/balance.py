"""The load balancer: its cost, a killed server, and weights by load: `bench.balance`.

Run with `python -m bench.balance`. First the p50 of one request in flight, directly and through
`tritonpy balance`, alternating; the goal is 400 us more at most. Then 20,000 requests while one of
two servers is killed; the goal is that none is lost. Last, two servers of which one takes twice the
time, with each policy: the share of the slower one and the p99.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench import clients, payloads, processes
from bench.processes import Running
from tritonpy_balance.balancer import Balancer
from tritonpy_balance.options import BalanceOptions

MODELS = Path(__file__).parents[1] / "examples" / "models"
MOST_US = 400
REQUESTS = 20_000
DELAYS_S = (0.004, 0.008)
INSTANCES = 4
IN_FLIGHT = 9
REPORTS = "frontends: {http: {load_reports: {always: true}}}\n"
SLOW = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(DELAY)
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(name, each.inputs()[0].as_numpy())
                    for name in ("OUTPUT0", "OUTPUT1")
                ]
            )
            for each in requests
        ]
"""
SLOW_CONFIG = f"""
backend: "python" max_batch_size: 1
input {{ name: "INPUT0" data_type: TYPE_INT32 dims: 16 }}
input {{ name: "INPUT1" data_type: TYPE_INT32 dims: 16 }}
output {{ name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 }}
output {{ name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 }}
instance_group {{ count: {INSTANCES} }}
"""


def main() -> int:
    """Print the three tables; return 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="length of one run")
    arguments = parser.parse_args()
    met = _print_cost(arguments.pairs, arguments.seconds)
    met &= _print_kill()
    _print_weights(arguments.seconds)
    return 0 if met else 1


@contextlib.contextmanager
def _balanced(servers: list[Running], **options: Any) -> Iterator[Running]:
    port = processes.free_port()
    backends = tuple(f"127.0.0.1:{server.http}:{server.grpc}" for server in servers)
    with Balancer(BalanceOptions(backends=backends, port=port, **options)) as balancer:
        processes.wait_http(port)
        yield Running("balancer", balancer.envoy.pid, port, port)


def _print_cost(pairs: int, seconds: int) -> bool:
    print("| protocol | p50 directly | p50 through Envoy | more |\n|---|---|---|---|")
    payload, met = payloads.add_sub(), True
    with processes.tritonpy(MODELS) as server, _balanced([server]) as balancer:
        for name, load in (("HTTP", clients.wrk), ("gRPC", clients.grpc_varied)):
            direct, through = [], []
            for _ in range(pairs):
                direct.append(load(server, payload, 1, seconds).p50_us)
                through.append(load(balancer, payload, 1, seconds).p50_us)
            more = median(there - here for there, here in zip(through, direct, strict=True))
            met &= more <= MOST_US
            print(
                f"| {name} | {median(direct):.0f} us | {median(through):.0f} us | {more:.0f} us |"
            )
    return met


def _print_kill() -> bool:
    print(f"\n{REQUESTS:,} requests, one of two servers killed after a quarter:")
    lost = 0
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(processes.tritonpy(MODELS)) for _ in range(2)]
        balancer = stack.enter_context(_balanced(servers))
        found: collections.Counter[int | str] = collections.Counter()
        slowest = [0.0]
        threads = [
            threading.Thread(target=_send, args=(balancer.http, REQUESTS // 4, found, slowest))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        while sum(found.values()) < REQUESTS // 4:
            time.sleep(0.01)
        os.kill(servers[0].pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        lost = sum(count for status, count in found.items() if status != 200)
    print(f"lost {lost}, slowest {slowest[0] * 1000:.0f} ms, {dict(found)}")
    return lost == 0


def _send(
    port: int, count: int, found: collections.Counter[int | str], slowest: list[float],
    times: list[float] | None = None, until: Callable[[], bool] | None = None,
) -> None:  # fmt: skip
    payload = payloads.add_sub()
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(payload.header_length),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(count):
        if until is not None and until():
            break
        started = time.perf_counter()
        try:
            connection.request("POST", f"/v2/models/{payload.model}/infer", payload.body, headers)
            response = connection.getresponse()
            response.read()
            found[response.status] += 1
        except (OSError, http.client.HTTPException) as error:
            found[type(error).__name__] += 1
            connection.close()
        elapsed = time.perf_counter() - started
        slowest[0] = max(slowest[0], elapsed)
        if times is not None:
            times.append(elapsed)
    connection.close()


def _print_weights(seconds: int) -> None:
    expected = DELAYS_S[0] / sum(DELAYS_S)
    print(f"\nTwo servers, one with half the capacity: its fair share is {expected:.0%}.")
    print("| policy | its share | requests/s | p50 | p99 |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        servers = [stack.enter_context(_slow_server(Path(folder, str(d)), d)) for d in DELAYS_S]
        for policy in ("round-robin", "least-request", "load"):
            with _balanced(servers, policy=policy, slow_start_s=0.0) as balancer:
                _run_load(balancer.http, 4.0)  # weights settle
                before = [_count(server) for server in servers]
                times = _run_load(balancer.http, 2.0 * seconds)
                done = [
                    _count(server) - count for server, count in zip(servers, before, strict=True)
                ]
            p50, p99 = (1000 * times[len(times) * share // 100] for share in (50, 99))
            rate = len(times) / (2 * seconds)
            print(
                f"| {policy} | {done[1] / sum(done):.0%} | {rate:.0f} "
                f"| {p50:.1f} ms | {p99:.1f} ms |",
                flush=True,
            )


@contextlib.contextmanager
def _slow_server(folder: Path, delay: float) -> Iterator[Running]:
    version = folder / "models" / "add_sub" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(SLOW.replace("DELAY", str(delay)))
    (version.parent / "config.pbtxt").write_text(SLOW_CONFIG)
    (folder / "server.yaml").write_text(REPORTS)
    with processes.tritonpy(folder / "models", f"--config={folder / 'server.yaml'}") as server:
        yield server


def _run_load(port: int, seconds: float) -> list[float]:
    """Return the times of all requests in order of size."""
    deadline = time.monotonic() + seconds
    times: list[float] = []
    found: collections.Counter[int | str] = collections.Counter()
    threads = [
        threading.Thread(
            target=_send,
            args=(port, 1 << 30, found, [0.0], times, lambda: time.monotonic() > deadline),
        )
        for _ in range(IN_FLIGHT)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if set(found) != {200}:
        raise RuntimeError(f"requests failed: {dict(found)}")
    return sorted(times)


def _count(server: Running) -> int:
    import json

    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=10)
    connection.request("GET", "/v2/models/add_sub/stats")
    document = json.loads(connection.getresponse().read())
    connection.close()
    return int(document["model_stats"][0]["inference_count"])


if __name__ == "__main__":
    sys.exit(main())
