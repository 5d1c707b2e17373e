"""Prometheus text format 0.0.4 with unchanged counter names.

The writer of prometheus-client appends `_total` to every counter. Triton's counters have no such
suffix, and dashboards depend on their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from prometheus_client import Metric
from prometheus_client.samples import Sample


class TextMetric(Metric):
    """A family with formatted lines instead of samples, which are several times as expensive."""

    def __init__(self, name: str, documentation: str, kind: str, lines: list[str]) -> None:
        super().__init__(name, documentation, kind)
        self.lines = lines


def text_format(families: Iterable[Metric]) -> bytes:
    """Return the text of the families.

    Labels are in alphabetical order, with a bucket's bound or a quantile last. A family without
    help text has no HELP line.
    """
    lines: list[str] = []
    for family in families:
        if family.documentation:
            lines.append(f"# HELP {family.name} {_escape(family.documentation)}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        lines += (
            family.lines
            if isinstance(family, TextMetric)
            else [_line(sample) for sample in family.samples]
        )
    return "".join(lines).encode()


def number(value: float) -> str:
    """Format `value` as Triton does: up to 16 significant digits, integers in full."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "Nan"
    return f"{value:.16g}" if math.isfinite(value) else f"{value:+}".title()


def _line(sample: Sample) -> str:
    return f"{sample.name}{labels_text(tuple(sample.labels.items()))} {number(sample.value)}\n"


@lru_cache(maxsize=1 << 16)
def labels_text(labels: tuple[tuple[str, str], ...]) -> str:
    """Return the text of `labels`. Cached, because most labels repeat in the next scrape."""
    if not labels:
        return ""
    ordered = sorted(labels, key=lambda label: (label[0] in {"le", "quantile"}, label[0]))
    return "{" + ",".join([f'{name}="{_escape_label(value)}"' for name, value in ordered]) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape(text).replace('"', r"\"")
