"""A canary that is good in its first step and then goes bad, in simulated requests: what clients saw of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from tritonpy_traffic.canary import CanaryRun, CanaryState
from tritonpy_traffic.spec import Canary, Step
from tritonpy_traffic.spread import SQUARE_ROOT_OF_2, Spread

STEPS = [Step(share, requests=200) for share in (0.05, 0.25, 0.5)]
GAP_NS = 1_000_000  # between two requests
OPEN = 8  # requests on their way at once
BAD_FROM_STEP = 1
REQUESTS = 10_000


@dataclass
class Seen:
    """What clients saw, after each request: the canary's share, and the share of the answers of its step that it failed."""

    failed_share: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    failures: int = 0
    reason: str = ""
    promoted: bool = False


def simulate(max_failed_share: float, error_rate: float, seed: int = 0) -> Seen:
    """Send requests at a canary that fails with `error_rate` from its second step on; the primary fails once in a thousand."""
    source, tries = random.Random(seed), Spread(SQUARE_ROOT_OF_2)
    run = CanaryRun(Canary("model", 2, steps=STEPS, max_failed_share=max_failed_share), 0)
    seen, waiting = Seen(), []
    for number in range(1, REQUESTS + 1):
        now = number * GAP_NS
        tried = run.live and tries.next() < run.share and run.ledger.has_room()
        if tried:
            run.ledger.enter()
        waiting.append((tried, run.ledger))
        if len(waiting) < OPEN:
            continue
        was_tried, ledger = waiting.pop(0)
        failed = source.random() < (error_rate if was_tried and run.step >= BAD_FROM_STEP else 0.001)
        if was_tried:
            ledger.leave(answered=True, failed=failed)
            run.answered(GAP_NS, failed=failed)
            seen.failures += failed
        else:
            run.ledger.answers += 1
            run.primary_answered(GAP_NS, failed=failed)
        if now >= run.look_ns or (failed and was_tried):
            run.look(now)
        seen.failed_share.append(ledger.failures / ledger.answers if ledger.answers else 0.0)
        seen.share.append(run.share)
    seen.reason, seen.promoted = run.reason, run.state is CanaryState.PROMOTED
    return seen


def summary() -> str:
    """Return a table: how often it is rolled back, and what clients saw at worst, by error rate."""
    lines = [
        "| canary fails | limit | promoted | most failed answers | highest share in a step |",
        "|---|---|---|---|---|",
    ]
    for rate in (0.001, 0.02, 0.1, 1.0):
        found = [simulate(0.01, rate, seed) for seed in range(10)]
        lines.append(
            f"| {rate:.1%} | 1 % | {sum(seen.promoted for seen in found)} of {len(found)} "
            f"| {max(seen.failures for seen in found)} | {max(max(seen.failed_share) for seen in found):.2%} |"
        )
    return "\n".join(lines)


def draw(file: Path) -> None:
    """Write a picture: shares over requests, for three error rates."""
    import matplotlib.pyplot as plt

    rates = (0.02, 0.1, 1.0)
    figure, columns = plt.subplots(1, len(rates), figsize=(4 * len(rates), 3.5), layout="constrained")
    for rate, axes in zip(rates, columns, strict=True):
        seen = simulate(0.01, rate)
        end = "promoted" if seen.promoted else "rolled back"
        axes.plot(seen.share, c="tab:blue")
        axes.set(title=f"fails {rate:.0%} from its second step on: {end}", xlabel="requests", ylim=(0, 0.6))
        axes.set_ylabel("share of the canary", color="tab:blue")
        failing = axes.twinx()
        failing.plot([100 * share for share in seen.failed_share], c="tab:red", lw=0.8)
        failing.axhline(1, c="tab:red", ls=":")
        failing.set(ylim=(0, 1.2))
        failing.set_ylabel("failed answers of the step, %", color="tab:red")
    figure.savefig(file)
