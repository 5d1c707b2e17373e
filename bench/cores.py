"""Throughput prediction for more CPU cores: `python -m bench.cores`.

Measures the cost of a request in frontend processes, engine and workers with N = 0, 1 and 2
frontend processes (interleaved short runs, CPU times from /proc). From these costs it predicts the
rate on 4, 16 and 64 cores. As a check, the costs at N = 1 must predict the rate at N = 2, and vice
versa.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path

import psutil

from bench import clients, models, payloads, processes
from bench.clients import LoadResult
from bench.processes import Running

CORES = (1, 2, 4, 8, 16, 32, 64)
MAX_ROWS = (4, 16, 64)
IN_FLIGHT = 128
_FRONTEND = "tritonpy_frontend_processes.process"
LoadFunction = Callable[[Running, int], LoadResult]


@dataclass(frozen=True)
class Costs:
    """CPU us of a request by process kind, load generator included; rate and cores of the run."""

    frontend: float
    engine: float
    worker: float
    client: float
    rate: float
    cores: float

    @property
    def server(self) -> float:
        """CPU us of the whole server."""
        return self.frontend + self.engine + self.worker


@dataclass(frozen=True)
class Forecast:
    """Predicted rate, with the numbers of frontend processes and workers and the limiting stage."""

    rate: float
    frontends: int
    workers: int
    limit: str


def predict(
    costs: Costs, cores: float, frontends: int, workers: int, client_us: float = 0.0
) -> tuple[float, str]:
    """Return requests per second and the limiting stage; each process uses at most one core.

    `client_us` is the load generator's CPU time on the same cores.
    """
    limits = {
        "engine": 1e6 / costs.engine,
        "frontends": frontends * 1e6 / costs.frontend if frontends else float("inf"),
        "workers": workers * 1e6 / costs.worker,
        "cores": cores * 1e6 / (costs.server + client_us),
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def best_forecast(costs: Costs, cores: int) -> Forecast:
    """Return the best forecast over the number of processes, without the load generator."""
    if not costs.frontend:
        rate, limit = predict(costs, cores, 0, cores)
        return Forecast(rate, 0, min(cores, ceil(rate * costs.worker / 1e6)), limit)
    forecasts = []
    for frontends in range(1, cores + 1):
        rate, limit = predict(costs, cores, frontends, cores)
        forecasts.append(Forecast(rate, frontends, ceil(rate * costs.worker / 1e6), limit))
    return max(forecasts, key=lambda forecast: (round(forecast.rate), -forecast.frontends))


def prediction_ratio(measured: Costs, known: Costs, frontends: int) -> float:
    """Return the measured rate relative to the prediction from the costs at another N."""
    return measured.rate / predict(known, measured.cores, frontends, 1, known.client)[0]


def measure(server: Running, run_load: LoadFunction, seconds: int) -> Costs:
    """Load the server once and return the costs."""
    before, client = _cpu_by_stage(server), _client_seconds()
    load = run_load(server, seconds)
    spent = {stage: now - before[stage] for stage, now in _cpu_by_stage(server).items()}
    client = _client_seconds() - client
    count = sum(spent.values()) * 1e6 / load.cpu_us
    each = {stage: time * 1e6 / count for stage, time in spent.items()}
    cores = load.rate * (sum(each.values()) + client * 1e6 / count) / 1e6
    return Costs(
        each["frontend"], each["engine"], each["worker"], client * 1e6 / count, load.rate, cores
    )


def median(runs: list[Costs]) -> Costs:
    """Return the median of each field."""
    return Costs(
        *(statistics.median(getattr(run, field.name) for run in runs) for field in fields(Costs))
    )


def _cpu_by_stage(server: Running) -> dict[str, float]:
    spent = {"frontend": 0.0, "engine": 0.0, "worker": 0.0}
    for process in [
        psutil.Process(server.pid),
        *psutil.Process(server.pid).children(recursive=True),
    ]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            stage = "frontend" if _FRONTEND in process.cmdline() else "worker"
            spent["engine" if process.pid == server.pid else stage] += times.user + times.system
    return spent


def _client_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # ended children only, not the servers
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def _servers() -> Iterator[dict[int, Running]]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models.write_python(folder)
        yield {
            count: stack.enter_context(processes.tritonpy(folder, f"--frontend-processes={count}"))
            for count in (0, 1, 2)
        }


def main() -> None:
    """Measure both protocols, print the tables, and draw the plot if `--plot` is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of one run")
    parser.add_argument("--plot", type=Path, help="write the plot to this file")
    arguments = parser.parse_args()
    payload = payloads.add_sub()
    protocols: dict[str, LoadFunction] = {
        "HTTP": lambda server, seconds: clients.wrk(server, payload, IN_FLIGHT, seconds),
        "gRPC": lambda server, seconds: clients.h2load(server, payload, IN_FLIGHT, seconds),
    }
    found: dict[str, dict[int, Costs]] = {}
    with _servers() as servers:
        for protocol, run_load in protocols.items():
            runs: dict[int, list[Costs]] = {count: [] for count in servers}
            for _ in range(arguments.rounds):
                for count, server in servers.items():
                    runs[count].append(measure(server, run_load, arguments.seconds))
            found[protocol] = {count: median(each) for count, each in runs.items()}
            report(protocol, found[protocol])
    if arguments.plot is not None:
        draw(found, arguments.plot)


def report(protocol: str, costs: dict[int, Costs]) -> None:
    """Print the measured costs, the check of the prediction, and the prediction."""
    print(f"\n{protocol}, {IN_FLIGHT} in flight, CPU us per request (medians):")
    print(
        (
            "| N | frontends | engine | workers | client | requests/s | cores used | engine / "
            "all of N = 0 |\n"
        )
        + "|---" * 8
        + "|"
    )
    for count, each in costs.items():
        share = f"{each.engine / costs[0].server:.2f}" if count else ""
        print(
            f"| {count} | {each.frontend:.1f} | {each.engine:.1f} | {each.worker:.1f} | "
            f"{each.client:.1f} | {each.rate:,.0f} "
            f"| {each.cores:.2f} | {share} |"
        )
    for count, other in ((1, 2), (2, 1)):
        ratio = prediction_ratio(costs[count], costs[other], count)
        print(
            f"the rate at N = {count} is {ratio:.2f} of the prediction from the costs at N = "
            f"{other}"
        )
    print(
        "\n| cores | one process | N frontend processes | N | workers | times | limited by |\n"
        + "|---" * 7
        + "|"
    )
    for cores in MAX_ROWS:
        one, many = best_forecast(costs[0], cores), best_forecast(costs[2], cores)
        print(
            f"| {cores} | {one.rate:,.0f} | {many.rate:,.0f} | {many.frontends} | {many.workers} "
            f"| {many.rate / one.rate:.1f} "
            f"| {many.limit} |"
        )


def draw(found: dict[str, dict[int, Costs]], file: Path) -> None:
    """Write the plot to `file`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(11, 4.2), constrained_layout=True)
    for axis, (protocol, costs) in zip(axes, found.items(), strict=True):
        for count, label, style in ((0, "one process", "--"), (2, "N frontend processes", "-")):
            axis.plot(
                CORES,
                [best_forecast(costs[count], cores).rate / 1e3 for cores in CORES],
                style,
                marker="o",
                label=label,
            )
        axis.set(
            title=protocol,
            xlabel="cores",
            ylabel="thousand requests/s",
            xscale="log",
            xticks=CORES,
            xticklabels=CORES,
        )
        axis.minorticks_off()
        axis.set_ylim(0)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle("Forecast from the costs of one request on two cores (bench/cores.py)")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
