"""The RPCs of trace and log settings, as functions of the engine and a request message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritonpy import Engine, InvalidArgument, Unsupported
from tritonpy.frontend import LogChanges, LogSettings
from tritonpy.tracing import trace_changes, trace_texts
from tritonpy_protos import grpc_service_pb2 as pb

_FORMATS = ("default", "ISO8601", "json")
# setting -> field of LogChanges, choice of the oneof, type name in Triton's texts
_LOG_FIELDS = {
    "log_info": ("info", "bool_param", "boolean"),
    "log_warning": ("warning", "bool_param", "boolean"),
    "log_error": ("error", "bool_param", "boolean"),
    "log_verbose_level": ("verbose", "uint32_param", "int32"),
    "log_format": ("format", "string_param", "string"),
}


def trace_setting(engine: Engine, message: pb.TraceSettingRequest) -> pb.TraceSettingResponse:
    """Apply the changes in `message` and return all settings; an empty list clears a setting.

    Raises TritonError with Triton's texts.
    """
    model = message.model_name
    if model:  # an unknown model takes precedence over invalid settings
        engine.trace_settings(model)
    if message.settings:
        changes = trace_changes(
            {name: list(value.value) or None for name, value in message.settings.items()}
        )
        engine.change_trace_settings(changes, model)
    response = pb.TraceSettingResponse()
    for name, texts in trace_texts(engine.trace_settings(model)).items():
        response.settings[name].value.extend(texts)
    return response


def log_settings(engine: Engine, message: pb.LogSettingsRequest) -> pb.LogSettingsResponse:
    """Apply the changes in `message` in order and return all settings.

    Raises TritonError with Triton's texts; earlier changes remain in effect.
    """
    for changes in _log_changes(message):
        engine.change_log_settings(changes)
    return _to_response(engine.log_settings())


def _log_changes(message: pb.LogSettingsRequest) -> Iterator[LogChanges]:
    if "log_file" in message.settings:
        raise Unsupported("log file location can not be updated through network protocol")
    for name, (field, choice, kind) in _LOG_FIELDS.items():
        if name not in message.settings:
            continue
        value = message.settings[name]
        if value.WhichOneof("parameter_choice") != choice:
            raise InvalidArgument(f"expect {kind} for '{name}'")
        yield LogChanges(**{field: _checked(name, getattr(value, choice))})


def _checked(name: str, value: Any) -> Any:
    if name == "log_format" and value not in _FORMATS:
        raise InvalidArgument(f"invalid argument for log_format, got: {value}")
    if name == "log_verbose_level" and value >= 2**31:
        return value - 2**32  # Triton stores an int32
    return value


def _to_response(settings: LogSettings) -> pb.LogSettingsResponse:
    response = pb.LogSettingsResponse()
    values = response.settings
    values["log_file"].string_param = settings.file
    values["log_info"].bool_param = settings.info
    values["log_warning"].bool_param = settings.warning
    values["log_error"].bool_param = settings.error
    values["log_verbose_level"].uint32_param = settings.verbose & 0xFFFFFFFF
    values["log_format"].string_param = settings.format
    return response
