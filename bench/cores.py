"""What more cores bring: `python -m bench.cores`.

Measures what a request costs in the frontend processes, in the engine's process and in the models' workers with N = 0, 1 and 2 frontend processes
(interleaved short runs, CPU time of each process from /proc), and predicts from these costs what 4, 16 and 64 cores can do. The prediction is checked
where this machine can: the costs at N = 1 must foretell the rate at N = 2, and the other way round.
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
from bench.clients import Load
from bench.processes import Running

CORES = (1, 2, 4, 8, 16, 32, 64)
SHOWN = (4, 16, 64)
IN_FLIGHT = 128
_FRONTEND = "tritonpy.frontend_processes.process"
Loading = Callable[[Running, int], Load]


@dataclass(frozen=True)
class Costs:
    """CPU microseconds of one request by where they are spent, the load generator's too; and the run's rate and how many cores it had."""

    frontend: float
    engine: float
    worker: float
    client: float
    rate: float
    cores: float

    @property
    def server(self) -> float:
        """All of the server's."""
        return self.frontend + self.engine + self.worker


@dataclass(frozen=True)
class Forecast:
    """What so many cores can do, with how many frontend processes and workers, and which stage stands in the way of more."""

    rate: float
    frontends: int
    workers: int
    limit: str


def foretell(costs: Costs, cores: float, frontends: int, workers: int, client_us: float = 0.0) -> tuple[float, str]:
    """Return requests per second, and what limits them: the engine and each process of the others use one core at most.

    `client_us` is what the load generator takes of the same cores.
    """
    limits = {
        "engine": 1e6 / costs.engine,
        "frontends": frontends * 1e6 / costs.frontend if frontends else float("inf"),
        "workers": workers * 1e6 / costs.worker,
        "cores": cores * 1e6 / (costs.server + client_us),
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def best(costs: Costs, cores: int) -> Forecast:
    """Return the forecast with as many processes as serve: the load generator has a machine of its own."""
    if not costs.frontend:
        rate, limit = foretell(costs, cores, 0, cores)
        return Forecast(rate, 0, min(cores, ceil(rate * costs.worker / 1e6)), limit)
    forecasts = []
    for frontends in range(1, cores + 1):
        rate, limit = foretell(costs, cores, frontends, cores)
        forecasts.append(Forecast(rate, frontends, ceil(rate * costs.worker / 1e6), limit))
    return max(forecasts, key=lambda forecast: (round(forecast.rate), -forecast.frontends))


def crosscheck(of: Costs, known: Costs, frontends: int) -> float:
    """Return by how much the rate that was measured (`of`) differs from what the costs at another N foretell on the cores that the run had."""
    return of.rate / foretell(known, of.cores, frontends, 1, known.client)[0]


def measure(server: Running, loading: Loading, seconds: int) -> Costs:
    """Load the server once."""
    before, client = _by_stage(server), _client_seconds()
    load = loading(server, seconds)
    spent = {stage: now - before[stage] for stage, now in _by_stage(server).items()}
    client = _client_seconds() - client
    count = sum(spent.values()) * 1e6 / load.cpu_us
    each = {stage: time * 1e6 / count for stage, time in spent.items()}
    cores = load.rate * (sum(each.values()) + client * 1e6 / count) / 1e6
    return Costs(each["frontend"], each["engine"], each["worker"], client * 1e6 / count, load.rate, cores)


def median(runs: list[Costs]) -> Costs:
    """Return the medians, field by field."""
    return Costs(*(statistics.median(getattr(run, field.name) for run in runs) for field in fields(Costs)))


def _by_stage(server: Running) -> dict[str, float]:
    spent = {"frontend": 0.0, "engine": 0.0, "worker": 0.0}
    for process in [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            stage = "frontend" if _FRONTEND in process.cmdline() else "worker"
            spent["engine" if process.pid == server.pid else stage] += times.user + times.system
    return spent


def _client_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of those that have ended: not of the servers
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
    """Measure both protocols, print the tables, and draw the plot where a file for it is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of one run")
    parser.add_argument("--plot", type=Path, help="write the plot there")
    arguments = parser.parse_args()
    payload = payloads.add_sub()
    protocols: dict[str, Loading] = {
        "HTTP": lambda server, seconds: clients.wrk(server, payload, IN_FLIGHT, seconds),
        "gRPC": lambda server, seconds: clients.h2load(server, payload, IN_FLIGHT, seconds),
    }
    found: dict[str, dict[int, Costs]] = {}
    with _servers() as servers:
        for protocol, loading in protocols.items():
            runs: dict[int, list[Costs]] = {count: [] for count in servers}
            for _ in range(arguments.rounds):
                for count, server in servers.items():
                    runs[count].append(measure(server, loading, arguments.seconds))
            found[protocol] = {count: median(each) for count, each in runs.items()}
            report(protocol, found[protocol])
    if arguments.plot is not None:
        draw(found, arguments.plot)


def report(protocol: str, costs: dict[int, Costs]) -> None:
    """Print what was measured, what that foretells, and how far it can be trusted."""
    print(f"\n{protocol}, {IN_FLIGHT} in flight, CPU us per request (medians):")
    print(
        "| N | frontends | engine | workers | client | requests/s | cores had | engine / all of N = 0 |\n"
        + "|---" * 8
        + "|"
    )
    for count, each in costs.items():
        share = f"{each.engine / costs[0].server:.2f}" if count else ""
        print(
            f"| {count} | {each.frontend:.1f} | {each.engine:.1f} | {each.worker:.1f} | {each.client:.1f} | {each.rate:,.0f} "
            f"| {each.cores:.2f} | {share} |"
        )
    for count, other in ((1, 2), (2, 1)):
        ratio = crosscheck(costs[count], costs[other], count)
        print(f"the rate at N = {count} is {ratio:.2f} of what the costs at N = {other} foretell")
    print("\n| cores | one process | N frontend processes | N | workers | times | limited by |\n" + "|---" * 7 + "|")
    for cores in SHOWN:
        one, many = best(costs[0], cores), best(costs[2], cores)
        print(
            f"| {cores} | {one.rate:,.0f} | {many.rate:,.0f} | {many.frontends} | {many.workers} | {many.rate / one.rate:.1f} "
            f"| {many.limit} |"
        )


def draw(found: dict[str, dict[int, Costs]], file: Path) -> None:
    """Write the plot."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(11, 4.2), constrained_layout=True)
    for axis, (protocol, costs) in zip(axes, found.items(), strict=True):
        for count, label, style in ((0, "one process", "--"), (2, "N frontend processes", "-")):
            axis.plot(CORES, [best(costs[count], cores).rate / 1e3 for cores in CORES], style, marker="o", label=label)
        axis.set(
            title=protocol, xlabel="cores", ylabel="thousand requests/s", xscale="log", xticks=CORES, xticklabels=CORES
        )
        axis.minorticks_off()
        axis.set_ylim(0)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle("Forecast from the costs of one request on two cores (bench/cores.py)")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
