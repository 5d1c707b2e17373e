from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET

from tritonpy.tracing import TraceChanges, TraceSettings
from tritonpy.tracing.protocol_settings import trace_changes, trace_texts
from tritonpy_types.errors import InvalidArgument, Unsupported


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (["TENSORS", "TIMESTAMPS"], ["TIMESTAMPS", "TENSORS"]),
        (["TENSORS", "TENSORS"], ["TENSORS"]),
        (["OFF"], []),
        (["LOUD", "TENSORS"], ["TENSORS"]),
        (["LOUD"], UNSET),
        ([], UNSET),
        (None, None),
    ],
)
def test_levels_are_read(names, level):
    assert trace_changes({"trace_level": names}) == TraceChanges(level=level)


@pytest.mark.parametrize(
    ("name", "field", "text", "value"),
    [
        ("trace_rate", "rate", "5", 5),
        ("trace_rate", "rate", " \t+12abc", 12),
        ("trace_rate", "rate", "-1", 2**32 - 1),
        ("trace_rate", "rate", "00000000000000000007", 7),
        ("log_frequency", "log_frequency", "-3", 2**32 - 3),
        ("trace_count", "count", "-1", -1),
        ("trace_count", "count", "2147483647", 2**31 - 1),
    ],
)
def test_numbers_are_read_as_c_reads_them(name, field, text, value):
    assert trace_changes({name: [text]}) == TraceChanges(**{field: value})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"trace_level": ["OFF", "TENSORS"]}, "Expect only one trace level 'OFF' is specified"),
        ({"trace_rate": ["x"]}, "Unable to parse 'trace_rate', got: x"),
        ({"trace_rate": [""]}, "Unable to parse 'trace_rate', got: "),
        ({"trace_rate": ["٣"]}, "Unable to parse 'trace_rate', got: ٣"),
        ({"trace_rate": ["1", "2"]}, "expect only 1 value for 'trace_rate'"),
        (
            {"trace_rate": ["5000000000"]},
            "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 5000000000",
        ),
        (
            {"log_frequency": ["9" * 5000]},
            f"Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: {'9' * 5000}",
        ),
        (
            {"trace_count": ["2147483648"]},
            "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 2147483648",
        ),
        ({"trace_count": ["-2"]}, "Unable to parse 'trace_count'. Expecting value >= -1, got: -2"),
    ],
)
def test_invalid_values_are_refused_in_triton_s_words(texts, message):
    with pytest.raises(InvalidArgument) as refused:
        trace_changes(texts)
    assert refused.value.message == message


@pytest.mark.parametrize("value", [None, ["x"]])
def test_the_file_cannot_be_changed(value):
    with pytest.raises(
        Unsupported, match="trace file location can not be updated through network protocol"
    ):
        trace_changes({"trace_file": value, "trace_rate": ["x"]})


def test_none_clears_and_unknown_names_are_ignored():
    assert trace_changes({"trace_count": None, "unknown": ["1"]}) == TraceChanges(count=None)


def test_settings_are_written():
    settings = TraceSettings(["TENSORS"], 5, -1, 2, "f", "triton", {})
    assert trace_texts(settings) == {
        "trace_level": ["TENSORS"], "trace_rate": ["5"], "trace_count": ["-1"], "log_frequency": ["2"],
        "trace_file": ["f"], "trace_mode": ["triton"],
    }  # fmt: skip
    other = msgspec.structs.replace(settings, level=[], mode="opentelemetry", options={"url": "u"})
    assert trace_texts(other) == {
        "trace_level": ["OFF"], "trace_rate": ["5"], "trace_count": ["-1"], "trace_mode": ["opentelemetry"], "url": ["u"]
    }  # fmt: skip
