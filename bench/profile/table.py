"""The profile of a scenario as Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from bench.profile.scenario import RequestCosts, Scenario
from bench.profile.stages import IN_WORKER, STAGES, boundaries


def table(scenario: Scenario, costs: RequestCosts) -> str:
    """Return one row per stage of server and worker, and the rest that no stage covers."""
    stages = {**boundaries(scenario.protocol, scenario.backend), **IN_WORKER}
    wakes = (
        f"until an instance is awake {costs.to_instance_us:.0f} us, until the loop is "
        f"{costs.to_loop_us:.0f} us"
    )
    lines = [
        "",
        (
            f"**{scenario}**: {costs.cpu_us:.0f} us of CPU per request, {costs.batch:.1f} "
            f"requests per execution; {wakes}"
        ),
        "",
        "| stage | us | calls | blocks |",
        "|---|---|---|---|",
    ]
    for stage in STAGES:
        for suffix, names in (
            ("", stages.keys() - IN_WORKER.keys()),
            (" (worker)", IN_WORKER.keys()),
        ):
            chosen = {name for name in names if stages[name] == stage and name in costs.us}
            if chosen:
                us, calls, blocks = (
                    _sum(each, chosen) for each in (costs.us, costs.calls, costs.blocks)
                )
                lines.append(f"| {stage}{suffix} | {us:.1f} | {calls:.0f} | {blocks:+.0f} |")
    total_us = sum(us for name, us in costs.us.items() if stages.get(name) in STAGES)
    lines.append(f"| all stages | {total_us:.1f} | | |")
    lines.append(f"| transport, kernel, threads | {costs.cpu_us - total_us:.1f} | | |")
    return "\n".join(lines)


def _sum(figures: Mapping[str, float], names: set[str]) -> float:
    return sum(figures.get(name, 0.0) for name in names)
