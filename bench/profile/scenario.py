"""Profile of a scenario: a server in this process under external load, with recorded stages."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import uvloop

from bench import clients, models, payloads
from bench.processes import Running
from bench.profile import recorder
from bench.profile.recorder import METERS, Recorder
from bench.profile.stages import IN_WORKER, boundaries
from bench.profile.wake_ups import WakeUps
from tritonpy import running_server

LOADS = {"http": clients.wrk, "grpc": clients.h2load}
MODELS = {"onnx": "add_sub", "python": "batched"}
WARM_UP_S = 1
COUNTING_S = 1
INFER = "tritonpy.engine.local:LocalEngine.infer"  # called once per request
RESPOND = "tritonpy.model.loaded_model:LoadedModel.respond"  # called once per batch
_PROBE = """\
import atexit
from pathlib import Path

from recorder import METERS, Recorder

probe = Recorder(METERS[{meter!r}]())
probe.begin()
probe.patch({names!r})
requests_seen = 0


class TritonPythonModel(TritonPythonModel):
    def execute(self, requests):
        global requests_seen
        requests_seen += len(requests)
        return super().execute(requests)

    def finalize(self):
        probe.save(Path({result!r}), max(requests_seen, 1))
"""


@dataclass(frozen=True)
class Scenario:
    """One table of the profile: a protocol, a backend, and the number of requests in flight."""

    protocol: str
    backend: str
    in_flight: int

    def __str__(self) -> str:
        return f"{self.protocol}, {self.backend}, {self.in_flight} in flight"


@dataclass
class RequestCosts:
    """Costs per request by function; `cpu_us` is that of all processes, without recorders."""

    cpu_us: float = 0.0
    batch: float = 0.0
    to_instance_us: float = 0.0  # from the wake-up until the instance runs
    to_loop_us: float = 0.0  # from the response until the event loop runs
    us: dict[str, float] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    blocks: dict[str, float] = field(default_factory=dict)


def profile(scenario: Scenario, seconds: int) -> RequestCosts:
    """Measure CPU time without recorders, then stages, then calls and blocks with one in flight."""
    costs = RequestCosts()
    with _running_server(scenario) as running:
        _load(scenario, running, WARM_UP_S)
        costs.cpu_us = _load(scenario, running, seconds).cpu_us
    wake_ups = WakeUps()
    costs.us, costs.batch = _recorded(scenario, "us", seconds, wake_ups)
    costs.to_instance_us, costs.to_loop_us = wake_ups.medians_us()
    alone = Scenario(scenario.protocol, scenario.backend, 1)
    costs.calls, _ = _recorded(alone, "calls", COUNTING_S)
    costs.blocks, _ = _recorded(alone, "blocks", COUNTING_S)
    return costs


def _recorded(
    scenario: Scenario, meter: str, seconds: int, wake_ups: WakeUps | None = None
) -> tuple[dict[str, float], float]:
    """Return the cost per request of each function, and the requests per batch."""
    each = Recorder(METERS[meter]())
    in_thread = threading.Thread(target=each.begin)  # calibrates in a thread like the recorded ones
    threading.setprofile(each.profiler())
    try:
        in_thread.start()
        in_thread.join()
        each.patch(boundaries(scenario.protocol, scenario.backend))
        if wake_ups is not None:
            wake_ups.patch()
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "worker.json")
            with _running_server(scenario, (meter, result)) as running:
                _load(scenario, running, WARM_UP_S)
                each.clear()
                _load(scenario, running, seconds)
                requests = each.count(INFER)
                costs, batch = each.per_request(requests), requests / max(each.count(RESPOND), 1)
            if result.exists():
                costs |= json.loads(result.read_text())
        return costs, batch
    finally:
        threading.setprofile(None)
        each.restore()
        if wake_ups is not None:
            wake_ups.restore()


@contextmanager
def _running_server(scenario: Scenario, probe: tuple[str, Path] | None = None) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        if scenario.backend == "onnx":
            models.write_onnx(repository)
        else:
            models.write_python(repository)
            if probe is not None:
                _append_probe(repository / "add_sub/1", *probe)
        config = {
            "repositories": [{"url": folder}],
            "frontends": {"http": {"port": 0}, "grpc": {"port": 0}},
        }
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        with running_server(config) as server:
            ports = [int(address.rpartition(":")[2]) for address in (server.http, server.grpc)]
            yield Running("tritonpy", psutil.Process().pid, *ports)


def _append_probe(folder: Path, meter: str, result: Path) -> None:
    shutil.copy(recorder.__file__, folder / "recorder.py")
    model = folder / "model.py"
    source = _PROBE.format(meter=meter, names=list(IN_WORKER), result=str(result))
    model.write_text(f"{model.read_text()}\n{source}")


def _load(scenario: Scenario, running: Running, seconds: int) -> clients.LoadResult:
    return LOADS[scenario.protocol](running, payloads.add_sub(), scenario.in_flight, seconds)
