"""Trace settings, as clients read and change them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class TraceSettings(msgspec.Struct, frozen=True):
    """The trace settings of a model, or of the models without own settings.

    `level` is empty if tracing is off. `count` is the number of remaining traces, -1 for no limit.
    Only the mode "triton" uses `log_frequency` and `file`. `options` are the other options of the
    mode, as text.
    """

    level: list[str]
    rate: int
    count: int
    log_frequency: int
    file: str
    mode: str
    options: dict[str, str]


class TraceChanges(msgspec.Struct, frozen=True):
    """New trace settings; None removes a value so that the wider setting applies, UNSET keeps it."""

    level: list[str] | UnsetType | None = UNSET
    rate: int | UnsetType | None = UNSET
    count: int | UnsetType | None = UNSET
    log_frequency: int | UnsetType | None = UNSET
