"""Simulation of a canary that fails from its second step on, and its effect on clients."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from tritonpy_traffic.canary import CanaryRun, CanaryState
from tritonpy_traffic.low_discrepancy import SQUARE_ROOT_OF_2, LowDiscrepancySequence
from tritonpy_traffic.spec import Canary, CanaryStep

STEPS = [CanaryStep(share, requests=200) for share in (0.05, 0.25, 0.5)]
GAP_NS = 1_000_000  # between two requests
IN_FLIGHT = 8  # concurrent requests
BAD_FROM_STEP = 1
REQUESTS = 10_000


@dataclass
class Observations:
    """State after each request: the canary's share, and its failure rate in the step."""

    failed_share: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    failures: int = 0
    reason: str = ""
    promoted: bool = False


def simulate(max_failed_share: float, error_rate: float, seed: int = 0) -> Observations:
    """Simulate a canary that fails with `error_rate` from step 2; the primary fails with 0.001."""
    source, tries = random.Random(seed), LowDiscrepancySequence(SQUARE_ROOT_OF_2)
    run = CanaryRun(Canary("model", 2, steps=STEPS, max_failed_share=max_failed_share), 0)
    observed, waiting = Observations(), []
    for number in range(1, REQUESTS + 1):
        now = number * GAP_NS
        tried = run.is_live and tries.next() < run.share and run.failure_budget.can_reserve()
        if tried:
            run.failure_budget.begin_request()
        waiting.append((tried, run.failure_budget))
        if len(waiting) < IN_FLIGHT:
            continue
        was_tried, budget = waiting.pop(0)
        failed = source.random() < (
            error_rate if was_tried and run.step >= BAD_FROM_STEP else 0.001
        )
        if was_tried:
            budget.end_request(counted=True, failed=failed)
            run.record_response(GAP_NS, failed=failed)
            observed.failures += failed
        else:
            run.failure_budget.responses += 1
            run.record_primary_response(GAP_NS, failed=failed)
        if now >= run.next_evaluation_ns or (failed and was_tried):
            run.evaluate(now)
        observed.failed_share.append(
            budget.failures / budget.responses if budget.responses else 0.0
        )
        observed.share.append(run.share)
    observed.reason, observed.promoted = run.reason, run.state is CanaryState.PROMOTED
    return observed


def summary() -> str:
    """Return a table by error rate: promotions, failed responses, and the highest failed share."""
    lines = [
        "| canary fails | limit | promoted | most failed responses | highest share in a step |",
        "|---|---|---|---|---|",
    ]
    for rate in (0.001, 0.02, 0.1, 1.0):
        found = [simulate(0.01, rate, seed) for seed in range(10)]
        lines.append(
            f"| {rate:.1%} | 1 % | {sum(observed.promoted for observed in found)} of {len(found)} "
            f"| {max(observed.failures for observed in found)} | "
            f"{max(max(observed.failed_share) for observed in found):.2%} |"
        )
    return "\n".join(lines)


def draw(file: Path) -> None:
    """Plot the shares over requests for three error rates into `file`."""
    import matplotlib.pyplot as plt

    rates = (0.02, 0.1, 1.0)
    figure, columns = plt.subplots(
        1, len(rates), figsize=(4 * len(rates), 3.5), layout="constrained"
    )
    for rate, axes in zip(rates, columns, strict=True):
        observed = simulate(0.01, rate)
        end = "promoted" if observed.promoted else "rolled back"
        axes.plot(observed.share, c="tab:blue")
        axes.set(
            title=f"fails {rate:.0%} from its second step on: {end}",
            xlabel="requests",
            ylim=(0, 0.6),
        )
        axes.set_ylabel("share of the canary", color="tab:blue")
        failing = axes.twinx()
        failing.plot([100 * share for share in observed.failed_share], c="tab:red", lw=0.8)
        failing.axhline(1, c="tab:red", ls=":")
        failing.set(ylim=(0, 1.2))
        failing.set_ylabel("failed responses of the step, %", color="tab:red")
    figure.savefig(file)
