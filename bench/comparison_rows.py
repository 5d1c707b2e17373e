"""Rows of the comparison with the real Triton: same model, configuration and load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import clients, payloads
from bench.clients import LoadResult
from bench.processes import Running
from bench.rows import NO_GOAL, P50, P99, RATE, Case

TRITON = "Triton"
ON_GRPCIO = "tritonpy on grpcio"
ONNX = "tritonpy with ONNX Runtime"
ONNX_ON_GRPCIO = "tritonpy with ONNX Runtime on grpcio"
ECHO = {"uvicorn": "echo http", "grpcio": "echo grpc", "h2": "echo grpc on h2"}
FORMS = {
    clients.wrk_varied: "wrk, varied requests",
    clients.grpc_varied: "bench.varied_grpc, varied requests",
}
# With a thread per request in flight, perf_analyzer often hangs on two cores, with every server.
FEW_THREADS = ("--async", "--max-threads=2")
PERF_SECONDS = 3

Client = Callable[[Running, payloads.Payload, int, int], LoadResult]


@dataclass(frozen=True)
class Target:
    """The required ratio (`goal`) and the desired one (`aim`)."""

    goal: float
    aim: float


@dataclass(frozen=True)
class Protocol:
    """The load generators of a protocol and its targets.

    Requests of `varied` differ from each other, as those of real clients do; its rows have the
    verdicts. The requests of `client` are identical, so caches of the server recognize them.
    """

    name: str
    client: Client
    varied: Client
    batched: Target
    single: Target
    latency: Target


PROTOCOLS = {
    "http": Protocol(
        "HTTP",
        clients.wrk,
        clients.wrk_varied,
        Target(1.3, 1.5),
        Target(1.1, 1.5),
        Target(1.1, 1.0),
    ),
    "grpc": Protocol(
        "gRPC",
        clients.h2load,
        clients.grpc_varied,
        Target(1.2, 1.5),
        Target(1.0, 1.3),
        Target(1.6, 1.0),
    ),
}
TAIL, LARGE = Target(1.0, 0.5), Target(1.0, 1.2)
# The goal as a share of the echo's rate, by transport and requests in flight.
ECHO_GOALS = {("grpcio", 8): 0.7, ("grpcio", 32): 0.7}
TRANSPORTS = {"uvicorn": ("http",), "h2": ("grpc",), "grpcio": ("grpc",)}
SUBJECTS = {"grpcio": ON_GRPCIO}
ONNX_SUBJECTS = {"grpcio": ONNX_ON_GRPCIO}
BATCHING_NAMES = {"single": "no batching", "batched": "dynamic batching"}


def comparison_cases(transport: str, perf_analyzer: Path | None) -> Iterator[Case]:
    """Yield the rows of one transport."""
    for name in TRANSPORTS[transport]:
        protocol = PROTOCOLS[name]
        yield from _light_client_cases(transport, protocol)
        if perf_analyzer is not None:
            yield from _perf_analyzer_cases(transport, protocol, name, perf_analyzer)
    if transport != "uvicorn":
        yield from _echo_cases(transport)


def _light_client_cases(transport: str, protocol: Protocol) -> Iterator[Case]:
    subject, client = subject_of(transport), protocol.client
    settings = [("batched", in_flight, protocol.batched, RATE) for in_flight in (32, 64)]
    settings += [("single", in_flight, protocol.single, RATE) for in_flight in (8, 32, 64)]
    settings += [("single", 1, protocol.latency, P50)]
    settings += [(model, 32, TAIL, P99) for model in BATCHING_NAMES]
    for model, in_flight, target, figure in settings:
        for form in (protocol.varied, client):
            name = _with_figure(
                f"{_title(protocol, transport)}, {BATCHING_NAMES[model]}, {in_flight} in flight, "
                f"{FORMS.get(form, form.__name__)}",
                figure,
            )
            load = _load(form, payloads.add_sub(model), in_flight)
            goal, aim = (target.goal, target.aim) if form is protocol.varied else (NO_GOAL, None)
            yield Case(name, TRITON, load, goal, figure, subject, aim)
    for transport_text, payload in (
        ("", payloads.identity()),
        (" through shared memory", payloads.identity_in_region()),
    ):
        name = (
            f"{_title(protocol, transport)}, 16 MiB in and out{transport_text}, 2 in flight, "
            f"{client.__name__}"
        )
        yield Case(name, TRITON, _load(client, payload, 2), LARGE.goal, RATE, subject, LARGE.aim)


def _perf_analyzer_cases(
    transport: str, protocol: Protocol, name: str, binary: Path
) -> Iterator[Case]:
    subject = subject_of(transport)
    settings = [("batched", count, protocol.batched, RATE) for count in (32, 64)]
    settings += [("single", count, protocol.single, RATE) for count in (8, 32, 64)]
    settings += [("single", 1, protocol.latency, P50)]
    for model, in_flight, target, figure in settings:
        title = (
            f"{_title(protocol, transport)}, {BATCHING_NAMES[model]}, {in_flight} in flight, "
            "perf_analyzer"
        )
        load = _perf(binary, model, in_flight, name)
        yield Case(
            _with_figure(title, figure), TRITON, load, target.goal, figure, subject, target.aim
        )


def _echo_cases(transport: str) -> Iterator[Case]:
    """Yield rows with the transport's own cost: the echo alone, and against ONNX Runtime."""
    echo, protocol, payload = ECHO[transport], PROTOCOLS["grpc"], payloads.add_sub()
    title = _title(protocol, transport)
    latency = _load(protocol.client, payloads.add_sub("single"), 1)
    yield Case(
        f"{title}, the bare echo, 1 in flight, h2load p50", TRITON, latency, NO_GOAL, P50, echo
    )
    subject = ONNX_SUBJECTS.get(transport, ONNX)
    for in_flight in (8, 32):
        for form in (protocol.varied, protocol.client):
            name = (
                f"{title}, ONNX add/sub in process, dynamic batching, {in_flight} in flight, "
                f"{FORMS.get(form, form.__name__)}"
            )
            is_judged = form is protocol.varied
            goal = ECHO_GOALS.get((transport, in_flight), NO_GOAL) if is_judged else NO_GOAL
            yield Case(name, echo, _load(form, payload, in_flight), goal, RATE, subject)


def subject_of(transport: str) -> str:
    """Return the name of the server that runs on a transport."""
    return SUBJECTS.get(transport, "tritonpy")


def _title(protocol: Protocol, transport: str) -> str:
    return f"{protocol.name} on {transport}"


def _with_figure(name: str, figure: str) -> str:
    return name if figure == RATE else f"{name} {figure}"


def _load(
    client: Client, payload: payloads.Payload, in_flight: int
) -> Callable[[Running, int], LoadResult]:
    return lambda server, seconds: client(server, payload, in_flight, seconds)


def _perf(
    binary: Path, model: str, in_flight: int, protocol: str
) -> Callable[[Running, int], LoadResult]:
    more = FEW_THREADS if in_flight > 1 else ()
    return lambda server, _seconds: clients.perf_analyzer_with(
        binary, server, model, in_flight, protocol, PERF_SECONDS, more
    )
