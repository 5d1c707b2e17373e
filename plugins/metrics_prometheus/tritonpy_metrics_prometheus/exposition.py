"""Families -> Prometheus' text format 0.0.4, with counters under the names that they have.

prometheus-client's own writer appends `_total` to every counter. Triton's counters have no such ending, and dashboards ask
for them by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample


def text_format(families: Iterable[Metric]) -> bytes:
    """Return the text, labels in alphabetical order; whole numbers are written without a fraction."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape(family.documentation)}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        lines.extend(_line(sample) for sample in family.samples)
    return "".join(lines).encode()


def _line(sample: Sample) -> str:
    labels = ",".join([f'{name}="{_escape_label(value)}"' for name, value in sorted(sample.labels.items())])
    return f"{sample.name}{{{labels}}} {sample.value!r}\n" if labels else f"{sample.name} {sample.value!r}\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape(text).replace('"', r"\"")
