"""What is measured of latencies beside their sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

Quantiles = Mapping[float, float]
"""The error of each quantile, both between 0 and 1."""

DEFAULT_QUANTILES = "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"


class LatencySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions of every model's latencies, for the metrics. Off, they cost a request nothing."""

    histograms: Annotated[
        bool,
        Meta(description="Count the times to the first response in buckets; a model's model_metrics may choose them."),
    ] = False
    summaries: Annotated[bool, Meta(description="Keep quantiles of the last minute's latencies.")] = False
    quantiles: Annotated[
        str,
        Meta(description="Which quantiles, and how wrong each may be: <quantile>:<error>, with commas between them."),
    ] = DEFAULT_QUANTILES


NO_LATENCIES = LatencySettings()


def parse_quantiles(text: str) -> Quantiles:
    """Return the errors by quantile, in the order of the text. Raises ValueError for what is no such list."""
    return dict(_pair(each) for each in text.split(","))


def _pair(text: str) -> tuple[float, float]:
    quantile, colon, error = text.partition(":")
    try:
        pair = float(quantile), float(error)
    except ValueError:
        pair = 0.0, 0.0
    if not colon or not all(0 < number < 1 for number in pair):
        raise ValueError(f"'{text}' is not <quantile>:<error>, two numbers between 0 and 1")
    return pair
