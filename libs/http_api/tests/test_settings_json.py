from __future__ import annotations

import pytest
from msgspec import UNSET

from tritonpy import Internal, Unavailable, Unsupported
from tritonpy.frontend import LogChanges, LogSettings
from tritonpy.tracing import TraceChanges, TraceSettings
from tritonpy_http_api.settings_json import (
    log_document,
    read_log_changes,
    read_trace_changes,
    trace_document,
)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ({}, TraceChanges()),
        ([], TraceChanges()),
        (7, TraceChanges()),
        ({"trace_speed": 1}, TraceChanges()),
        ({"trace_level": ["TENSORS"], "trace_rate": "2"}, TraceChanges(level=["TENSORS"], rate=2)),
        ({"trace_level": None, "trace_count": None}, TraceChanges(level=None, count=None)),
        ({"log_frequency": "-1"}, TraceChanges(log_frequency=2**32 - 1)),
    ],
)
def test_trace_settings_are_read(body, changes):
    assert read_trace_changes(body) == changes


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (
            {"trace_file": "x"},
            Unsupported,
            "trace file location can not be updated through network protocol",
        ),
        (
            {"trace_file": None},
            Unsupported,
            "trace file location can not be updated through network protocol",
        ),
        ({"trace_level": "OFF"}, Internal, "attempt to access JSON non-array as array"),
        ({"trace_level": [1]}, Internal, "attempt to access JSON non-string as string"),
        ({"trace_rate": 5}, Internal, "attempt to access JSON non-string as string"),
    ],
)
def test_trace_settings_of_the_wrong_type_are_refused(body, kind, text):
    with pytest.raises(kind) as refused:
        read_trace_changes(body)
    assert refused.value.message == text


def test_a_too_small_count_has_the_text_of_this_protocol():
    with pytest.raises(Exception, match="Expecting value >= -1, got:-2"):
        read_trace_changes({"trace_count": "-2"})


def test_trace_settings_are_written():
    settings = TraceSettings([], 5, -1, 2, "f", "triton", {})
    assert trace_document(settings) == {
        "trace_level": ["OFF"], "trace_rate": "5", "trace_count": "-1", "log_frequency": "2", "trace_file": "f",
        "trace_mode": "triton",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ([], []),
        ({"log_file": None, "log_info": None}, []),
        (
            {"log_format": "ISO8601", "log_info": False, "log_verbose_level": 3},
            [LogChanges(info=False), LogChanges(verbose=3), LogChanges(format="ISO8601")],
        ),
        ({"log_verbose_level": 5000000000}, [LogChanges(verbose=705032704)]),
        ({"log_verbose_level": 2**32 - 1}, [LogChanges(verbose=-1)]),
    ],
)
def test_log_settings_are_read_separately(body, changes):
    assert list(read_log_changes(body)) == changes


def test_changes_before_an_invalid_one_are_returned():
    changes = read_log_changes({"log_info": False, "log_format": "xml"})
    assert next(changes) == LogChanges(info=False, warning=UNSET)
    with pytest.raises(Unavailable) as refused:
        next(changes)
    assert refused.value.message == "invalid argument for --log_format, got: xml"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"log_file": "x"}, Unsupported),
        ({"log_info": 1}, Internal),
        ({"log_verbose_level": -1}, Internal),
        ({"log_verbose_level": True}, Internal),
        ({"log_format": 7}, Internal),
    ],
)
def test_log_settings_of_the_wrong_type_are_refused(body, kind):
    with pytest.raises(kind):
        list(read_log_changes(body))


def test_log_settings_are_written():
    assert log_document(LogSettings(verbose=2, info=False, format="ISO8601", file="f")) == {
        "log_file": "f", "log_info": False, "log_warning": True, "log_error": True, "log_verbose_level": 2,
        "log_format": "ISO8601",
    }  # fmt: skip
