from __future__ import annotations

import pytest

from tritonpy.cli.overlay import BadFlags, Origins, overlay, read_flags
from tritonpy.cli.trace_flag import trace_level, trace_setting
from tritonpy.cli.triton_flags import TRITON_FLAGS


def merged(raw=None, **given):
    flags = {name.replace("_", "-"): texts for name, texts in given.items()}
    return overlay(raw, read_flags(TRITON_FLAGS, flags), Origins())["trace"]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("rate=5", ("", "rate", "5")),
        ("mode=OpenTelemetry", ("", "mode", "opentelemetry")),
        ("level=on", ("", "level", "TIMESTAMPS")),
        ("Triton,file=a,b=c", ("triton", "file", "a,b=c")),
        ("opentelemetry,resource=k=v", ("opentelemetry", "resource", "k=v")),
    ],
)
def test_settings_are_read(text, setting):
    assert trace_setting(text) == setting


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level=LOUD", "invalid value for trace level option: LOUD"),
        (
            ",file=x",
            (
                "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or "
                "<setting>=<value>. Got ,file=x"
            ),
        ),
        ("rate", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate"),
        ("rate=", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate="),
        ("triton,=x", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got triton,=x"),
    ],
)
def test_an_invalid_setting_is_refused_in_triton_s_words(text, message):
    with pytest.raises(ValueError) as refused:
        trace_setting(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("names", "level"),
    [("off FALSE", "OFF"), ("true on min max timestamps", "TIMESTAMPS"), ("tensors Tensors", "TENSORS")],
)
def test_levels_have_several_names(names, level):
    assert {trace_level(name) for name in names.split()} == {level}


def test_flags_fill_the_section_of_the_file_and_levels_and_resources_add_up():
    config = ["level=TIMESTAMPS", "level=TENSORS", "rate=2", "count=3", "mode=opentelemetry"]
    config += ["opentelemetry,resource=a=b", "opentelemetry,resource=c=d", "triton,log-frequency=4", "triton,file=f"]
    assert merged({"trace": {"level": ["OFF"], "modes": {"triton": {"log_frequency": 1}}}}, trace_config=config) == {
        "level": ["TIMESTAMPS", "TENSORS"],
        "rate": "2",
        "count": "3",
        "mode": "opentelemetry",
        "modes": {"opentelemetry": {"resource": ["a=b", "c=d"]}, "triton": {"log_frequency": "4", "file": "f"}},
    }


def test_deprecated_flags_have_the_same_meaning():
    assert merged(
        trace_file=["f"], trace_level=["MIN", "tensors"], trace_rate=["5"], trace_count=["6"], trace_log_frequency=["7"]
    ) == {
        "modes": {"triton": {"file": "f", "log_frequency": 7}},
        "level": ["TIMESTAMPS", "TENSORS"],
        "rate": 5,
        "count": 6,
    }


def test_an_invalid_level_is_named():
    with pytest.raises(BadFlags, match="invalid value for trace level option: LOUD"):
        merged(trace_config=["level=LOUD"])
