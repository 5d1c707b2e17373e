"""Trace and log settings in the protocol's JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritonpy import (
    LogChanges,
    LogSettings,
    TraceChanges,
    TraceSettings,
    Unavailable,
    Unsupported,
    trace_changes,
    trace_texts,
)
from tritonpy_frontend_http import json_document as document

_NUMBERS = ("trace_rate", "trace_count", "log_frequency")
_FORMATS = ("default", "ISO8601", "json")


def read_trace_changes(body: Any) -> TraceChanges:
    """Return what a body asks for; null clears. Raises TritonErrors in Triton's words."""
    if not isinstance(body, dict):
        return TraceChanges()
    texts: dict[str, list[str] | None] = {}
    if "trace_file" in body:
        texts["trace_file"] = None
    elif body.get("trace_level") is not None:
        texts["trace_level"] = [document.as_string(name) for name in document.as_array(body["trace_level"])]
    elif "trace_level" in body:
        texts["trace_level"] = None
    for name in _NUMBERS:
        if name in body:
            texts[name] = None if body[name] is None else [document.as_string(body[name])]
    return trace_changes(texts, gap="")


def trace_document(settings: TraceSettings) -> dict[str, Any]:
    """Return the answer that tells the settings."""
    return {name: texts if name == "trace_level" else texts[0] for name, texts in trace_texts(settings).items()}


def read_log_changes(body: Any) -> Iterator[LogChanges]:
    """Give what a body asks for one by one, as Triton follows it: what stands before a mistake holds. Null asks for nothing.

    Raises TritonErrors in Triton's words.
    """
    if document.find(body, "log_file") is not None:
        raise Unsupported("log file location can not be updated through network protocol")
    for name, (field, read) in _LOG_FIELDS.items():
        value = document.find(body, name)
        if value is not None:
            yield LogChanges(**{field: read(value)})


def log_document(settings: LogSettings) -> dict[str, Any]:
    """Return the answer that tells the settings."""
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
    return number - 2**32 if number >= 2**31 else number  # an int32 there


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
