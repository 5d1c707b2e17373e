"""Trace and log settings in the format of tritonclient.http."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tritonpy import Engine, InvalidArgument, Unsupported
from tritonpy.frontend import LogChanges
from tritonpy.tracing import trace_changes, trace_texts

_LOG_FIELDS = {
    "log_file": "file",
    "log_info": "info",
    "log_warning": "warning",
    "log_error": "error",
    "log_verbose_level": "verbose",
    "log_format": "format",
}


def read_trace_settings(engine: Engine, model_name: str) -> dict[str, Any]:
    """Return the settings of a model: the levels as a list, all others as text."""
    texts = trace_texts(engine.trace_settings(model_name))
    return {name: values if name == "trace_level" else values[0] for name, values in texts.items()}


def change_trace_settings(
    engine: Engine, model_name: str, changes: Mapping[str, str | list[str] | None]
) -> None:
    """Apply new values, each a text or a list of texts. None clears a setting."""
    texts = {name: [value] if isinstance(value, str) else value for name, value in changes.items()}
    engine.change_trace_settings(trace_changes(texts, gap=""), model_name)


def read_log_settings(engine: Engine) -> dict[str, Any]:
    """Return the log settings."""
    settings = engine.log_settings()
    return {name: getattr(settings, field) for name, field in _LOG_FIELDS.items()}


def change_log_settings(engine: Engine, changes: Mapping[str, Any]) -> None:
    """Apply new values. None leaves a setting unchanged."""
    if changes.get("log_file") is not None:
        raise Unsupported("log file location can not be updated through network protocol")
    fields = {
        _LOG_FIELDS[name]: value
        for name, value in changes.items()
        if name in _LOG_FIELDS and value is not None
    }
    try:
        requested = msgspec.convert(fields, LogChanges)
    except msgspec.ValidationError as error:
        raise InvalidArgument(str(error)) from error
    engine.change_log_settings(requested)
