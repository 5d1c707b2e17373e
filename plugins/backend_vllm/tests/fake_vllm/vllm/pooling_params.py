"""The parameters of an embedding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PoolingParams:
    dimensions: int | None = None
    task: str = "embed"
