"""Replaces a model of 5 ms again and again under load: `python -m bench.reload`. Full length: 60 s with 100 replacements, and 60 s without beside them.

The load is an open loop at a fifth of the model's capacity, half of it over HTTP and half over gRPC, and never stops; stretches in which nothing is
replaced alternate with stretches in which the model is. The exit status is 1 where a request failed, a request that was sent after a switch was
answered by an older generation, or the p99 is not at most twice the quiet one.

A switch is over when the load request has returned (explicit mode), and for every request that is sent after an answer of the new generation.
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

from bench.open_loop import Answer, OpenLoop
from bench.processes import Running, tritonpy
from bench.replaced_models import NAME, TAKES_S, Replaced, onnx_model, python_model
from bench.verdict import RESAMPLES, Verdict

MODELS: dict[str, Callable[[Path], Replaced]] = {"ONNX": onnx_model, "Python": python_model}
MODES = {
    "explicit": f"control: {{mode: explicit, load: [{NAME}]}}\n",
    "poll": "control: {mode: poll, interval_s: 0.1}\n",
}
SHARE = 0.2  # of the model's capacity
ALLOWED = 2.0
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Stretch:
    """Some seconds in a row, with replacements or quiet; moments of the monotonic clock."""

    began: float
    ended: float
    replaced: bool


@dataclass
class Outcome:
    """What was seen of one model in one mode; a switch is (moment, generation that serves from then on)."""

    name: str
    answers: Sequence[Answer]
    stretches: Sequence[Stretch]
    switches: Sequence[tuple[float, int]]
    _latencies: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._latencies = [
            [1e3 * each.latency_s for each in self.answers if stretch.began <= each.due < stretch.ended]
            for stretch in self.stretches
        ]

    def failed(self) -> list[Answer]:
        """Return the requests without an answer of the model."""
        return [each for each in self.answers if each.error]

    def outdated(self) -> list[Answer]:
        """Return the requests that an older generation answered than the one that served when they were sent."""
        seen = [(each.taken, each.value) for each in self.answers if not each.error]
        known = sorted([*self.switches, *seen])
        moments = [moment for moment, _ in known]
        newest = list(accumulate((generation for _, generation in known), max))
        return [
            each
            for each in self.answers
            if not each.error and (place := bisect_left(moments, each.sent)) and each.value < newest[place - 1]
        ]

    def latencies(self, *, replaced: bool) -> list[list[float]]:
        """Return the latencies in ms of each stretch of one kind."""
        pairs = zip(self.stretches, self._latencies, strict=True)
        return [each for stretch, each in pairs if stretch.replaced is replaced]

    def quantile(self, quantile: float, *, replaced: bool) -> float:
        """Return a quantile over all stretches of one kind, in ms."""
        return float(np.quantile(np.concatenate(self.latencies(replaced=replaced)), quantile))

    def verdict(self) -> Verdict:
        """Judge the ratio of the two p99, with an interval over the pairs of stretches."""
        pairs = list(zip(self.latencies(replaced=True), self.latencies(replaced=False), strict=True))
        source = random.Random(0)  # the same figures give the same interval
        ratios = sorted(_p99_ratio(source.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES // 10))
        low, high = ratios[len(ratios) // 20], ratios[-len(ratios) // 20 - 1]
        word = "met" if high <= ALLOWED else "short" if low > ALLOWED else "undecided"
        return Verdict(_p99_ratio(pairs), low, high, word)

    def line(self) -> str:
        """Return the row of the table."""
        p50s = "/".join(f"{self.quantile(0.5, replaced=each):.1f}" for each in (False, True))
        p99s = "/".join(f"{self.quantile(0.99, replaced=each):.1f}" for each in (False, True))
        return (
            f"{self.name:16} {len(self.answers):6} requests, {len(self.switches):3} replacements: {len(self.failed())} failed, "
            f"{len(self.outdated())} of an old version; p50 {p50s} ms, p99 {p99s} ms (quiet/replacing): {self.verdict()}"
        )

    def good(self) -> bool:
        """Say whether all of it is as promised; an undecided ratio is not held against it."""
        return not self.failed() and not self.outdated() and self.verdict().word != "short"


def _p99_ratio(pairs: Sequence[tuple[list[float], list[float]]]) -> float:
    busy, quiet = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return float(np.quantile(busy, 0.99) / np.quantile(quiet, 0.99))


class Replacing:
    """Replaces the model in one mode, and knows when the new one serves."""

    def __init__(self, model: Replaced, mode: str, server: Running, load: OpenLoop) -> None:
        self._model, self._explicit, self._load = model, mode == "explicit", load
        self._client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http}", network_timeout=PATIENCE_S)
        self._generation = 0
        self.switches: list[tuple[float, int]] = []

    def replace(self) -> None:
        """Put the next generation in place; returns when it serves."""
        self._generation += 1
        self._model.replace(self._generation)
        if self._explicit:
            self._client.load_model(NAME)
        else:
            deadline = time.monotonic() + PATIENCE_S
            while self._load.newest < self._generation:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"generation {self._generation} never served")
                time.sleep(0.005)
        self.switches.append((time.monotonic(), self._generation))


def watch(name: str, mode: str, seconds: float, replacements: int, pairs: int) -> Outcome:
    """Run one model in one mode, in `pairs` of stretches."""
    with tempfile.TemporaryDirectory() as folder:
        repository, settings = Path(folder, "models"), Path(folder, "server.yaml")
        settings.write_text(MODES[mode])
        model = MODELS[name](repository)
        with tritonpy(repository, f"--config={settings}") as server:
            load = OpenLoop(NAME, server.http, server.grpc, TAKES_S / SHARE)
            load.start()
            replacing = Replacing(model, mode, server, load)
            stretches = list(_stretches(replacing, seconds / pairs, _shares(replacements, pairs)))
            answers = load.stop()
    return Outcome(f"{name}, {mode}", answers, stretches, replacing.switches)


def _shares(total: int, parts: int) -> list[int]:
    return [total * (part + 1) // parts - total * part // parts for part in range(parts)]


def _stretches(replacing: Replacing, seconds: float, counts: Sequence[int]) -> Iterator[Stretch]:
    for count in counts:
        began = time.monotonic()
        time.sleep(seconds)
        yield Stretch(began, time.monotonic(), replaced=False)
        began = time.monotonic()
        for number in range(count):
            replacing.replace()
            time.sleep(max(began + seconds * (number + 1) / count - time.monotonic(), 0))
        yield Stretch(began, time.monotonic(), replaced=True)


def main() -> int:
    """Print a line for each model and mode, and draw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="time with replacements, and the same without")
    parser.add_argument("--replacements", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=10, help="stretches of each kind, by turns")
    parser.add_argument("--only", default="", help="rows whose name contains this, such as 'ONNX, poll'")
    parser.add_argument("--plot", type=Path, help="write a picture of it (needs matplotlib)")
    arguments = parser.parse_args()
    outcomes = []
    for name in MODELS:
        for mode in MODES:
            if arguments.only in f"{name}, {mode}":
                outcomes.append(watch(name, mode, arguments.seconds, arguments.replacements, arguments.pairs))
                print(outcomes[-1].line(), flush=True)
                for each in outcomes[-1].failed()[:5]:
                    print(f"    {each.protocol}: {each.error}", flush=True)
    if arguments.plot is not None:
        from bench.reload_plot import draw

        draw(outcomes, arguments.plot)
    return 0 if all(outcome.good() for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
