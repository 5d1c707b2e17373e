"""The profile of a scenario as Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from bench.profile.loading import Scenario, Spent
from bench.profile.stages import IN_WORKER, STAGES, boundaries


def table(scenario: Scenario, spent: Spent) -> str:
    """Return one row per stage, the worker's beside the server's, and what no stage covers."""
    stages = {**boundaries(scenario.protocol, scenario.backend), **IN_WORKER}
    wakes = f"until an instance is awake {spent.to_instance_us:.0f} us, until the loop is {spent.to_loop_us:.0f} us"
    lines = [
        "",
        f"**{scenario}**: {spent.cpu_us:.0f} us of CPU per request, {spent.batch:.1f} requests per execution; {wakes}",
        "",
        "| stage | us | calls | blocks |",
        "|---|---|---|---|",
    ]
    for stage in STAGES:
        for place, names in (("", stages.keys() - IN_WORKER.keys()), (" (worker)", IN_WORKER.keys())):
            chosen = {name for name in names if stages[name] == stage and name in spent.us}
            if chosen:
                us, calls, blocks = (_sum(each, chosen) for each in (spent.us, spent.calls, spent.blocks))
                lines.append(f"| {stage}{place} | {us:.1f} | {calls:.0f} | {blocks:+.0f} |")
    counted = sum(us for name, us in spent.us.items() if stages.get(name) in STAGES)
    lines.append(f"| all stages | {counted:.1f} | | |")
    lines.append(f"| transport, kernel, threads | {spent.cpu_us - counted:.1f} | | |")
    return "\n".join(lines)


def _sum(figures: Mapping[str, float], names: set[str]) -> float:
    return sum(figures.get(name, 0.0) for name in names)
