"""Repeated replacement of a 5 ms model under load: `python -m bench.reload`.

A full run has 60 s with 100 replacements and 60 s without. The load is a continuous open loop at a
fifth of the model's capacity, half over HTTP and half over gRPC. Quiet periods and periods with
replacements alternate. The exit status is 1 if a request failed, if an older generation responded
to a request sent after a switch, or if the p99 exceeds twice the quiet one.

A switch is complete when the load request has returned (explicit mode), and for requests sent after
a response of the new generation.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
import tritonclient.http

from bench.open_loop import OpenLoop, Response
from bench.processes import Running, tritonpy
from bench.replaced_models import NAME, TAKES_S, ReplaceableModel, onnx_model, python_model
from bench.verdict import RESAMPLES, Verdict

MODELS: dict[str, Callable[[Path], ReplaceableModel]] = {"ONNX": onnx_model, "Python": python_model}
MODES = {
    "explicit": f"control: {{mode: explicit, load: [{NAME}]}}\n",
    "poll": "control: {mode: poll, interval_s: 0.1}\n",
}
SHARE = 0.2  # of the model's capacity
ALLOWED = 2.0
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Period:
    """A time span with or without replacements, in seconds of the monotonic clock."""

    start_s: float
    end_s: float
    replaced: bool


@dataclass
class Outcome:
    """Results of one model in one mode; a switch is (time, generation that serves from then on)."""

    name: str
    responses: Sequence[Response]
    periods: Sequence[Period]
    switches: Sequence[tuple[float, int]]
    _latencies: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._latencies = [
            [
                1e3 * each.latency_s
                for each in self.responses
                if period.start_s <= each.due < period.end_s
            ]
            for period in self.periods
        ]

    def failed(self) -> list[Response]:
        """Return the failed requests."""
        return [each for each in self.responses if each.error]

    def outdated(self) -> list[Response]:
        """Return the requests answered by an older generation than the one serving when sent."""
        seen = [(each.received, each.value) for each in self.responses if not each.error]
        known = sorted([*self.switches, *seen])
        moments = [moment for moment, _ in known]
        newest = list(accumulate((generation for _, generation in known), max))
        return [
            each
            for each in self.responses
            if not each.error
            and (index := bisect_left(moments, each.sent))
            and each.value < newest[index - 1]
        ]

    def latencies(self, *, replaced: bool) -> list[list[float]]:
        """Return the latencies in ms of each period of one kind."""
        pairs = zip(self.periods, self._latencies, strict=True)
        return [each for period, each in pairs if period.replaced is replaced]

    def quantile(self, quantile: float, *, replaced: bool) -> float:
        """Return a latency quantile in ms over all periods of one kind."""
        return float(np.quantile(np.concatenate(self.latencies(replaced=replaced)), quantile))

    def verdict(self) -> Verdict:
        """Return the verdict on the ratio of both p99, over the pairs of periods."""
        pairs = list(
            zip(self.latencies(replaced=True), self.latencies(replaced=False), strict=True)
        )
        source = random.Random(0)  # equal results give equal intervals
        ratios = sorted(
            _p99_ratio(source.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES // 10)
        )
        low, high = ratios[len(ratios) // 20], ratios[-len(ratios) // 20 - 1]
        word = "met" if high <= ALLOWED else "short" if low > ALLOWED else "undecided"
        return Verdict(_p99_ratio(pairs), low, high, word)

    def line(self) -> str:
        """Return the row of the table."""
        p50s = "/".join(f"{self.quantile(0.5, replaced=each):.1f}" for each in (False, True))
        p99s = "/".join(f"{self.quantile(0.99, replaced=each):.1f}" for each in (False, True))
        return (
            f"{self.name:16} {len(self.responses):6} requests, {len(self.switches):3} "
            f"replacements: {len(self.failed())} failed, "
            f"{len(self.outdated())} of an old version; p50 {p50s} ms, p99 {p99s} ms "
            f"(quiet/replacing): {self.verdict()}"
        )

    def is_good(self) -> bool:
        """Return whether all goals are met; an undecided ratio counts as met."""
        return not self.failed() and not self.outdated() and self.verdict().word != "short"


def _p99_ratio(pairs: Sequence[tuple[list[float], list[float]]]) -> float:
    busy, quiet = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return float(np.quantile(busy, 0.99) / np.quantile(quiet, 0.99))


class ModelReplacer:
    """Replaces the model in one mode and records when the new generation serves."""

    def __init__(self, model: ReplaceableModel, mode: str, server: Running, load: OpenLoop) -> None:
        self._model, self._explicit, self._load = model, mode == "explicit", load
        self._client = tritonclient.http.InferenceServerClient(
            f"127.0.0.1:{server.http}", network_timeout=TIMEOUT_S
        )
        self._generation = 0
        self.switches: list[tuple[float, int]] = []

    def replace(self) -> None:
        """Install the next generation and wait until it serves."""
        self._generation += 1
        self._model.replace(self._generation)
        if self._explicit:
            self._client.load_model(NAME)
        else:
            deadline = time.monotonic() + TIMEOUT_S
            while self._load.newest < self._generation:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"generation {self._generation} never served")
                time.sleep(0.005)
        self.switches.append((time.monotonic(), self._generation))


def measure(name: str, mode: str, seconds: float, replacements: int, pairs: int) -> Outcome:
    """Run one model in one mode, in `pairs` of periods."""
    with tempfile.TemporaryDirectory() as folder:
        repository, settings = Path(folder, "models"), Path(folder, "server.yaml")
        settings.write_text(MODES[mode])
        model = MODELS[name](repository)
        with tritonpy(repository, f"--config={settings}") as server:
            load = OpenLoop(NAME, server.http, server.grpc, TAKES_S / SHARE)
            load.start()
            replacer = ModelReplacer(model, mode, server, load)
            periods = list(_periods(replacer, seconds / pairs, _shares(replacements, pairs)))
            responses = load.stop()
    return Outcome(f"{name}, {mode}", responses, periods, replacer.switches)


def _shares(total: int, parts: int) -> list[int]:
    return [total * (part + 1) // parts - total * part // parts for part in range(parts)]


def _periods(replacer: ModelReplacer, seconds: float, counts: Sequence[int]) -> Iterator[Period]:
    for count in counts:
        start_s = time.monotonic()
        time.sleep(seconds)
        yield Period(start_s, time.monotonic(), replaced=False)
        start_s = time.monotonic()
        for number in range(count):
            replacer.replace()
            time.sleep(max(start_s + seconds * (number + 1) / count - time.monotonic(), 0))
        yield Period(start_s, time.monotonic(), replaced=True)


def main() -> int:
    """Print a line per model and mode, and draw the plot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="time with replacements; the time without is equal",
    )
    parser.add_argument("--replacements", type=int, default=100)
    parser.add_argument(
        "--pairs", type=int, default=10, help="number of alternating periods of each kind"
    )
    parser.add_argument(
        "--only", default="", help="rows whose name contains this, such as 'ONNX, poll'"
    )
    parser.add_argument("--plot", type=Path, help="write a plot to this file (needs matplotlib)")
    arguments = parser.parse_args()
    outcomes = []
    for name in MODELS:
        for mode in MODES:
            if arguments.only in f"{name}, {mode}":
                outcomes.append(
                    measure(name, mode, arguments.seconds, arguments.replacements, arguments.pairs)
                )
                print(outcomes[-1].line(), flush=True)
                for each in outcomes[-1].failed()[:5]:
                    print(f"    {each.protocol}: {each.error}", flush=True)
    if arguments.plot is not None:
        from bench.reload_plot import draw

        draw(outcomes, arguments.plot)
    return 0 if all(outcome.is_good() for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
