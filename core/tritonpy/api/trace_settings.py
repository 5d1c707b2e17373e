"""What is traced, as clients read and change it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class TraceSettings(msgspec.Struct, frozen=True):
    """What applies to a model, or to those without settings of their own.

    `level` is empty where nothing is traced; `count` is how many traces are still to come, -1 for no limit. `log_frequency` and `file` mean
    something in the mode "triton" alone; `options` are what else the mode was given, as text.
    """

    level: list[str]
    rate: int
    count: int
    log_frequency: int
    file: str
    mode: str
    options: dict[str, str]


class TraceChanges(msgspec.Struct, frozen=True):
    """New values; None clears what was set, so that the wider setting applies again, UNSET leaves it."""

    level: list[str] | UnsetType | None = UNSET
    rate: int | UnsetType | None = UNSET
    count: int | UnsetType | None = UNSET
    log_frequency: int | UnsetType | None = UNSET
