"""The section `latencies` of server.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

Quantiles = Mapping[float, float]
"""Maps quantiles to their errors, both between 0 and 1."""

DEFAULT_QUANTILES = "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"


class LatencySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions of the models' latencies for the metrics; switched off, they cost nothing."""

    histograms: Annotated[
        bool,
        Meta(description="Count the times to the first response in buckets; a model's model_metrics may set them."),
    ] = False
    summaries: Annotated[bool, Meta(description="Keep quantiles of the last minute's latencies.")] = False
    quantiles: Annotated[
        str,
        Meta(description="Quantiles and their errors: <quantile>:<error>, separated by commas."),
    ] = DEFAULT_QUANTILES


_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")
_ERRORS = 0.0001, 0.999
"""Limits for the error in a lenient text: a smaller error would keep too many latencies."""

NO_LATENCIES = LatencySettings()


def parse_quantiles(text: str) -> Quantiles:
    """Return a mapping from each quantile to its allowed error, in the order of the text.

    Raises ValueError for an invalid list.
    """
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


def read_lenient_quantiles(text: str) -> tuple[str, list[str]]:
    """Return the quantiles that Triton would read from `text`, and warnings about the rest.

    The first result is valid for `parse_quantiles`. Triton uses the number at the start of a text,
    ignores items without one, and uses its default quantiles if no item is valid.
    """
    items: list[str] = []
    warnings: list[str] = []
    for item in filter(None, text.split(",")):
        try:
            parse_quantiles(item)
        except ValueError:
            found, warning = _lenient_item(item)
            items += found
            warnings.append(f"summary_quantiles: {warning}")
        else:
            items.append(item)
    if not items:
        warnings.append("summary_quantiles: no quantile is left, the default ones are used")
    return ",".join(items) or DEFAULT_QUANTILES, warnings


def _lenient_item(item: str) -> tuple[list[str], str]:
    """Return the item in the format of `parse_quantiles` if possible, and the warning about it."""
    before, colon, behind = item.partition(":")
    if not colon:
        return [], f"Invalid option: [{item}]. No ':' delimiter found. Expected format is <quantile>:<error>"
    first, second = _NUMBER.match(before), _NUMBER.match(behind)
    if first is None or second is None:
        return [], f"Invalid option: [{item}]. Error: stod"
    quantile, error = float(first[1]), min(max(float(second[1]), _ERRORS[0]), _ERRORS[1])
    if not 0 < quantile < 1:
        return [], f"'{item}' is ignored: a quantile is between 0 and 1"
    return [f"{quantile}:{error}"], f"'{item}' is read as {quantile}:{error}"
