"""Cost of routes and shadows: `python -m bench.traffic`.

Each row compares a route with a route of the same server without a shadow, or with the model
itself, in interleaved pairs. In rows of "5 ms", the shadow is another model of 5 ms with its own
instance. Rows and verdicts are as in `bench.compare`; the exit status is 1 if a row fell short. A
second table has the cost per request in µs. `--plot FILE` draws a simulated failing canary (needs
matplotlib).
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import clients, models, payloads, processes
from bench.canary_simulation import draw, summary
from bench.clients import LoadResult
from bench.processes import Running
from bench.program import parser_of, run
from bench.rows import P50, Case
from tritonpy import CallbackSink, Engine, InferRequest, InferResponse
from tritonpy.frontend import Router, RouterContext
from tritonpy.metrics import CustomMetrics
from tritonpy.plugins import NoOptions
from tritonpy_testing import ToyEngine
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.router import TrafficRouter
from tritonpy_traffic.spec import Canary, CanaryStep, RouteSpec, Shadow, Sticky, WeightedTarget

GOAL = 1.10
KINDS = {"tiny": "add_sub", "5 ms": "sleeping"}
SLEEPING = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.005)
        outputs = []
        for request in requests:
            one, other = (tensor.as_numpy() for tensor in request.inputs())
            total = pb_utils.Tensor("OUTPUT0", one + other)
            outputs.append([total, pb_utils.Tensor("OUTPUT1", one - other)])
        return [pb_utils.InferenceResponse(each) for each in outputs]
"""
ROUTE = "    {name}: {{targets: [{{model: {model}}}]{more}}}\n"
SHADOW = ", shadow: {{model: {model}_copy, share: {share}}}"


def main() -> int:
    """Run the chosen rows and print the tables; return 1 if a row fell short."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--plot", type=Path, help="write a plot of a canary to this file (needs matplotlib)"
    )
    arguments = parser.parse_args()
    if arguments.plot:
        draw(arguments.plot)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(
            processes.tritonpy(folder / "models", f"--config={write(folder)}")
        )
        names = {"shadow", "tenth", "route", "model"}
        status = run(
            arguments, cases(), {name: dataclasses.replace(ours, name=name) for name in names}
        )
    print("", *costs(), "", summary(), sep="\n")
    return status


def write(folder: Path) -> Path:
    """Write the models with copies for the shadow; return the path of the server.yaml."""
    repository, routes = folder / "models", ""
    models.write_pair(repository, "add_sub")
    models.write_pair(repository, "sleeping", SLEEPING)
    for model in KINDS.values():
        routes += ROUTE.format(name=f"{model}_route", model=model, more="")
        for name, share in (("shadow", 1.0), ("tenth", 0.1)):
            routes += ROUTE.format(
                name=f"{model}_{name}", model=model, more=SHADOW.format(model=model, share=share)
            )
    settings = folder / "server.yaml"
    settings.write_text(f"routers:\n  traffic:\n   routes:\n{routes}")
    return settings


def cases() -> list[Case]:
    """Return all rows: p50 with against without a shadow, and a route against its model."""
    rows = []
    for kind, model in KINDS.items():
        for client, protocol in ((clients.wrk, "HTTP"), (clients.h2load, "gRPC")):
            load = _load(client, model)
            rows += [
                Case(
                    f"{kind}, all requests copied, {protocol} p50",
                    "route",
                    load(1),
                    GOAL,
                    P50,
                    "shadow",
                ),
                Case(
                    f"{kind}, a tenth copied, {protocol} p50", "route", load(1), GOAL, P50, "tenth"
                ),
            ]
        rows.append(
            Case(
                f"{kind}, a route, HTTP p50",
                "model",
                _load(clients.wrk, model)(1),
                None,
                P50,
                "route",
            )
        )
    rows.append(
        Case(
            "tiny, a route, 32 in flight",
            "model",
            _load(clients.wrk, "add_sub")(32),
            None,
            subject="route",
        )
    )
    return rows


def _load(
    client: Callable[..., LoadResult], model: str
) -> Callable[[int], Callable[[Running, int], LoadResult]]:
    def in_flight(count: int) -> Callable[[Running, int], LoadResult]:
        def load(server: Running, seconds: int) -> LoadResult:
            name = model if server.name == "model" else f"{model}_{server.name}"
            return client(server, payloads.add_sub(name), count, seconds)

        return load

    return in_flight


class _ImmediateRouter(Router):
    """Responds immediately, so that only the routers in front of it are measured."""

    def infer(self, request: InferRequest) -> None:
        request.sink.put(request, InferResponse((), "digits", 1))


def costs(rounds: int = 2000) -> Iterator[str]:
    """Yield a table row per kind of route: additional µs per request, including the response."""
    one, two = WeightedTarget("digits", 1), WeightedTarget("digits", 2)
    canary = Canary("digits", 3, steps=[CanaryStep(0.1, seconds=3600)])
    specs = {
        "one target": RouteSpec([one]),
        "two targets": RouteSpec([one, two]),
        "two targets, sticky": RouteSpec([one, two], Sticky(parameter="user")),
        "one target and a canary": RouteSpec([one], canary=canary),
        "one target and a shadow of a tenth": RouteSpec(
            [one], shadow=Shadow("digits", 3, share=0.1)
        ),
    }
    yield "| route | µs per request |"
    yield "|---|---|"
    with ToyEngine() as toy:
        engine = _ImmediateRouter(
            NoOptions(), toy, RouterContext(CustomMetrics(), logging.getLogger("bench"))
        )
        bare = _microseconds(engine, rounds)
        without = TrafficRouter(
            TrafficOptions(), engine, RouterContext(CustomMetrics(), logging.getLogger("bench"))
        )
        yield f"| no route | {_microseconds(without, rounds) - bare:.2f} |"
        for name, spec in specs.items():
            options = TrafficOptions(routes={"digits": spec})
            router = TrafficRouter(
                options, engine, RouterContext(CustomMetrics(), logging.getLogger("bench"))
            )
            yield f"| {name} | {_microseconds(router, rounds) - bare:.2f} |"
            router.close()


def _microseconds(engine: Engine, rounds: int) -> float:
    sink = CallbackSink(lambda _request, _response: None)
    parameters = {"user": "alice"}
    infer = engine.infer

    def send() -> None:
        infer(InferRequest("digits", {}, sink, parameters=parameters))

    return min(timeit.repeat(send, number=rounds, repeat=5)) / rounds * 1e6


if __name__ == "__main__":
    sys.exit(main())
