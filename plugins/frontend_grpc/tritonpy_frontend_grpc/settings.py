"""The RPCs of trace and log settings, as functions from the engine and a message to a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritonpy import (
    Engine,
    InvalidArgument,
    LogChanges,
    LogSettings,
    Unsupported,
    trace_changes,
    trace_texts,
)
from tritonpy_protos import grpc_service_pb2 as pb

_FORMATS = ("default", "ISO8601", "json")
# setting -> field of LogChanges, the oneof's choice, what Triton calls its type
_LOG_FIELDS = {
    "log_info": ("info", "bool_param", "boolean"),
    "log_warning": ("warning", "bool_param", "boolean"),
    "log_error": ("error", "bool_param", "boolean"),
    "log_verbose_level": ("verbose", "uint32_param", "int32"),
    "log_format": ("format", "string_param", "string"),
}


def trace_setting(engine: Engine, asked: pb.TraceSettingRequest) -> pb.TraceSettingResponse:
    """Change the settings that are named, an empty list clears; tell all of them. Raises TritonErrors in Triton's words."""
    model = asked.model_name
    if model:  # an unknown one is refused before what is wrong with the settings
        engine.trace_settings(model)
    if asked.settings:
        changes = trace_changes({name: list(value.value) or None for name, value in asked.settings.items()})
        engine.change_trace_settings(changes, model)
    answer = pb.TraceSettingResponse()
    for name, texts in trace_texts(engine.trace_settings(model)).items():
        answer.settings[name].value.extend(texts)
    return answer


def log_settings(engine: Engine, asked: pb.LogSettingsRequest) -> pb.LogSettingsResponse:
    """Change the settings that are named, one after the other; tell all of them. Raises TritonErrors in Triton's words."""
    for changes in _log_changes(asked):
        engine.change_log_settings(changes)
    return _told(engine.log_settings())


def _log_changes(asked: pb.LogSettingsRequest) -> Iterator[LogChanges]:
    if "log_file" in asked.settings:
        raise Unsupported("log file location can not be updated through network protocol")
    for name, (field, choice, kind) in _LOG_FIELDS.items():
        if name not in asked.settings:
            continue
        value = asked.settings[name]
        if value.WhichOneof("parameter_choice") != choice:
            raise InvalidArgument(f"expect {kind} for '{name}'")
        yield LogChanges(**{field: _checked(name, getattr(value, choice))})


def _checked(name: str, value: Any) -> Any:
    if name == "log_format" and value not in _FORMATS:
        raise InvalidArgument(f"invalid argument for log_format, got: {value}")
    if name == "log_verbose_level" and value >= 2**31:
        return value - 2**32  # an int32 there
    return value


def _told(settings: LogSettings) -> pb.LogSettingsResponse:
    answer = pb.LogSettingsResponse()
    told = answer.settings
    told["log_file"].string_param = settings.file
    told["log_info"].bool_param = settings.info
    told["log_warning"].bool_param = settings.warning
    told["log_error"].bool_param = settings.error
    told["log_verbose_level"].uint32_param = settings.verbose & 0xFFFFFFFF
    told["log_format"].string_param = settings.format
    return answer
