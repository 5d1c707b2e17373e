"""Trace settings in the format of both protocols: lists of text by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy.api.trace_sink import TraceChanges, TraceSettings
from tritonpy_types.errors import InvalidArgument, Unsupported

_LEVELS = ("TIMESTAMPS", "TENSORS")
_NUMBERS = {"trace_rate": "rate", "trace_count": "count", "log_frequency": "log_frequency"}
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")  # the rest is ignored
_LEAST_COUNT = -1
_INT32_MIN, _INT32_MAX, _UINT32_MAX = -(2**31), 2**31 - 1, 2**32 - 1


def trace_changes(texts: Mapping[str, Sequence[str] | None], gap: str = " ") -> TraceChanges:
    """Return the changes in `texts`. None clears a setting; unknown names are ignored.

    `gap` precedes the value in the one text that differs between the protocols. Raises
    InvalidArgument with Triton's text, Unsupported for a file.
    """
    if "trace_file" in texts:
        raise Unsupported("trace file location can not be updated through network protocol")
    changes: dict[str, Any] = {}
    if "trace_level" in texts:
        level = texts["trace_level"]
        if level is None:
            changes["level"] = None
        elif (names := _level(level)) is not None:
            changes["level"] = names
    for name, field in _NUMBERS.items():
        if name in texts:
            value = texts[name]
            changes[field] = None if value is None else _number(name, value, gap)
    return TraceChanges(**changes)


def trace_texts(settings: TraceSettings) -> dict[str, list[str]]:
    """Return the settings as lists of text. Each list has one text, except for `trace_level`."""
    texts = {
        "trace_level": list(settings.level) or ["OFF"],
        "trace_rate": [str(settings.rate)],
        "trace_count": [str(settings.count)],
    }
    if settings.mode == "triton":
        texts |= {"log_frequency": [str(settings.log_frequency)], "trace_file": [settings.file]}
    return (
        texts
        | {"trace_mode": [settings.mode]}
        | {name: [text] for name, text in settings.options.items()}
    )


def _level(names: Sequence[str]) -> list[str] | None:
    if "OFF" in names:
        if len(names) > 1:
            raise InvalidArgument("Expect only one trace level 'OFF' is specified")
        return []
    return [name for name in _LEVELS if name in names] or None


def _number(name: str, values: Sequence[str], gap: str) -> int:
    if len(values) != 1:
        raise InvalidArgument(f"expect only 1 value for '{name}'")
    (text,) = values
    found = _NUMBER.match(text)
    if found is None:
        raise InvalidArgument(f"Unable to parse '{name}', got: {text}")
    # Triton reads an int32 for every range; Python refuses very long numbers
    value = int(found[1]) if len(found[1].lstrip("+-0")) <= 10 else _UINT32_MAX
    counts = name == "trace_count"
    if not _INT32_MIN <= value <= _INT32_MAX:
        allowed = f"{_LEAST_COUNT}, {_INT32_MAX}" if counts else f"0, {_UINT32_MAX}"
        raise InvalidArgument(
            f"Unable to parse '{name}', value is out of range [ {allowed} ], got: {text}"
        )
    if not counts:
        return value & _UINT32_MAX
    if value < _LEAST_COUNT:
        raise InvalidArgument(
            f"Unable to parse '{name}'. Expecting value >= {_LEAST_COUNT}, got:{gap}{text}"
        )
    return value
