"""Conversion of trace and log settings from and to JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritonpy import Unavailable, Unsupported
from tritonpy.frontend import LogChanges, LogSettings
from tritonpy.tracing import TraceChanges, TraceSettings, trace_changes, trace_texts
from tritonpy_http_api import json_document as document

_NUMBERS = ("trace_rate", "trace_count", "log_frequency")
_FORMATS = ("default", "ISO8601", "json")


def read_trace_changes(body: Any) -> TraceChanges:
    """Return the changes in a body; null clears a setting.

    Raises TritonError with Triton's texts.
    """
    if not isinstance(body, dict):
        return TraceChanges()
    texts: dict[str, list[str] | None] = {}
    if "trace_file" in body:
        texts["trace_file"] = None
    elif body.get("trace_level") is not None:
        texts["trace_level"] = [
            document.as_string(name) for name in document.as_array(body["trace_level"])
        ]
    elif "trace_level" in body:
        texts["trace_level"] = None
    for name in _NUMBERS:
        if name in body:
            texts[name] = None if body[name] is None else [document.as_string(body[name])]
    return trace_changes(texts, gap="")


def trace_document(settings: TraceSettings) -> dict[str, Any]:
    """Return the settings as JSON."""
    return {
        name: texts if name == "trace_level" else texts[0]
        for name, texts in trace_texts(settings).items()
    }


def read_log_changes(body: Any) -> Iterator[LogChanges]:
    """Yield the changes in a body one by one; null is ignored.

    As in Triton, changes before an invalid one take effect. Raises TritonError with Triton's texts.
    """
    if document.find(body, "log_file") is not None:
        raise Unsupported("log file location can not be updated through network protocol")
    for name, (field, read) in _LOG_FIELDS.items():
        value = document.find(body, name)
        if value is not None:
            yield LogChanges(**{field: read(value)})


def log_document(settings: LogSettings) -> dict[str, Any]:
    """Return the settings as JSON."""
    return {
        "log_file": settings.file,
        "log_info": settings.info,
        "log_warning": settings.warning,
        "log_error": settings.error,
        "log_verbose_level": settings.verbose,
        "log_format": settings.format,
    }


def _verbose(value: Any) -> int:
    number = document.as_uint(value) & 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number  # Triton stores an int32


def _format(value: Any) -> str:
    text = document.as_string(value)
    if text not in _FORMATS:
        raise Unavailable(f"invalid argument for --log_format, got: {text}")
    return text


_LOG_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "log_info": ("info", document.as_bool),
    "log_warning": ("warning", document.as_bool),
    "log_error": ("error", document.as_bool),
    "log_verbose_level": ("verbose", _verbose),
    "log_format": ("format", _format),
}
