"""Families -> Prometheus' text format 0.0.4, with counters under the names that they have.

prometheus-client's own writer appends `_total` to every counter. Triton's counters have no such ending, and dashboards ask
for them by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample


def text_format(families: Iterable[Metric]) -> bytes:
    """Return the text: labels in alphabetical order with a bucket's bound or a quantile last, no HELP for a family without one."""
    lines: list[str] = []
    for family in families:
        if family.documentation:
            lines.append(f"# HELP {family.name} {_escape(family.documentation)}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        lines.extend(_line(sample) for sample in family.samples)
    return "".join(lines).encode()


def number(value: float) -> str:
    """Return `value` as Triton writes it: 16 digits, no more of them than there are; an int has all of its own."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "Nan"
    return f"{value:.16g}" if math.isfinite(value) else f"{value:+}".title()


def _line(sample: Sample) -> str:
    names = sorted(sample.labels, key=lambda name: (name in {"le", "quantile"}, name))
    labels = ",".join([f'{name}="{_escape_label(sample.labels[name])}"' for name in names])
    return (
        f"{sample.name}{{{labels}}} {number(sample.value)}\n" if labels else f"{sample.name} {number(sample.value)}\n"
    )


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape(text).replace('"', r"\"")
