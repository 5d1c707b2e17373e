from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unsupported
from tritonpy_frontend_grpc.settings import log_settings, trace_setting
from tritonpy_protos import grpc_service_pb2 as pb

from .fake_engine import FakeEngine


@pytest.fixture
def engine():
    return FakeEngine()


def traced(engine, model="", **values):
    message = pb.TraceSettingRequest(model_name=model)
    for name, texts in values.items():
        message.settings[name].value.extend(texts)
    return {
        name: list(value.value) for name, value in trace_setting(engine, message).settings.items()
    }


def logged(engine, *values):
    message = pb.LogSettingsRequest()
    for name, choice, value in values:
        setattr(message.settings[name], choice, value)
    answer = log_settings(engine, message).settings
    return {
        name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in answer.items()
    }


def test_trace_settings_are_read_changed_and_cleared(engine):
    before = traced(engine)
    assert before == {
        "trace_level": ["OFF"], "trace_rate": ["1000"], "trace_count": ["-1"], "log_frequency": ["0"], "trace_file": [""],
        "trace_mode": ["triton"],
    }  # fmt: skip
    assert traced(engine, trace_rate=["5"], trace_count=["7"]) == {
        **before,
        "trace_rate": ["5"],
        "trace_count": ["7"],
    }
    assert traced(engine, "identity", trace_rate=["3"])["trace_rate"] == ["3"]
    assert traced(engine, trace_rate=[]) == {**before, "trace_count": ["7"]}
    assert traced(engine, "identity")["trace_rate"] == ["3"]


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        (
            {"trace_file": ["x"]},
            Unsupported,
            "trace file location can not be updated through network protocol",
        ),
        (
            {"trace_level": ["OFF", "TENSORS"]},
            InvalidArgument,
            "Expect only one trace level 'OFF' is specified",
        ),
        ({"trace_rate": ["1", "2"]}, InvalidArgument, "expect only 1 value for 'trace_rate'"),
        (
            {"trace_count": ["-2"]},
            InvalidArgument,
            "Unable to parse 'trace_count'. Expecting value >= -1, got: -2",
        ),
    ],
)
def test_invalid_trace_settings_are_refused(engine, values, kind, text):
    with pytest.raises(kind) as refused:
        traced(engine, **values)
    assert refused.value.message == text


def test_an_unknown_model_is_refused_first(engine):
    with pytest.raises(InvalidArgument) as refused:
        traced(engine, "unknown", trace_rate=["x"])
    assert refused.value.message == "Request for unknown model : unknown"


def test_log_settings_are_read_and_changed(engine):
    before = logged(engine)
    assert before == {
        "log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0,
        "log_format": "default",
    }  # fmt: skip
    changed = logged(
        engine,
        ("log_verbose_level", "uint32_param", 3),
        ("log_format", "string_param", "ISO8601"),
        ("x", "bool_param", True),
    )
    assert changed == {**before, "log_verbose_level": 3, "log_format": "ISO8601"}


def test_changes_before_an_invalid_one_take_effect(engine):
    with pytest.raises(InvalidArgument) as refused:
        logged(engine, ("log_info", "bool_param", False), ("log_format", "string_param", "xml"))
    assert refused.value.message == "invalid argument for log_format, got: xml"
    assert not logged(engine)["log_info"]


@pytest.mark.parametrize(
    ("name", "choice", "value", "kind", "text"),
    [
        (
            "log_file",
            "string_param",
            "x",
            Unsupported,
            "log file location can not be updated through network protocol",
        ),
        ("log_info", "uint32_param", 1, InvalidArgument, "expect boolean for 'log_info'"),
        (
            "log_verbose_level",
            "bool_param",
            True,
            InvalidArgument,
            "expect int32 for 'log_verbose_level'",
        ),
        ("log_format", "bool_param", True, InvalidArgument, "expect string for 'log_format'"),
    ],
)
def test_log_settings_of_another_type_are_refused(engine, name, choice, value, kind, text):
    with pytest.raises(kind) as refused:
        logged(engine, (name, choice, value))
    assert refused.value.message == text


def test_a_verbose_level_is_an_int32(engine):
    logged(engine, ("log_verbose_level", "uint32_param", 2**32 - 1))
    assert engine.log_settings().verbose == -1
    assert logged(engine)["log_verbose_level"] == 2**32 - 1
