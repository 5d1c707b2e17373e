from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, TritonError, Unsupported
from tritonpy_backend_trt.settings import model_settings

from .descriptions import config


def settings(text="", **parameters):
    return model_settings(config(text), parameters)


def test_the_defaults_are_one_buffer_set_and_all_weights_on_the_gpu():
    found = settings()
    assert (found.strategy, found.streaming_budget, found.memory_limit, found.priority) == (
        "STATIC",
        None,
        None,
        "DEFAULT",
    )
    assert (found.eager, found.output_stream, found.busy_wait, found.buffer_sets) == (
        False,
        False,
        False,
        1,
    )


def test_the_configuration_says_how_work_reaches_the_gpu():
    found = settings(
        "optimization { priority: PRIORITY_MAX eager_batching: true cuda { busy_wait_events: true } }"
    )
    assert (found.priority, found.eager, found.busy_wait, found.buffer_sets) == (
        "MAX",
        True,
        True,
        2,
    )
    assert settings("optimization { cuda { output_copy_stream: true } }").buffer_sets == 2


@pytest.mark.parametrize(
    ("text", "expected"), [("auto", "auto"), ("AUTO", "auto"), ("0", 0), ("1KiB", 1024)]
)
def test_the_streaming_budget_is_a_size_or_left_to_tensorrt(text, expected):
    assert settings(weight_streaming_budget=text).streaming_budget == expected


def test_parameters_say_strategy_and_memory_limit():
    found = settings(
        execution_context_allocation_strategy="ON_PROFILE_CHANGE", memory_limit_bytes="2MiB"
    )
    assert (found.strategy, found.memory_limit) == ("ON_PROFILE_CHANGE", 2 << 20)


@pytest.mark.parametrize(
    ("parameters", "kind", "text"),
    [
        (
            {"execution_context_allocation_strategy": "USER"}, InvalidArgument,
            ("Invalid value for 'execution_context_allocation_strategy': 'USER' for model instance 'm'. Supported values are "
            "'STATIC' and 'ON_PROFILE_CHANGE'."),
        ),
        ({"weight_streaming_budget": "half"}, InvalidArgument, "(bytes, such as 536870912 or 512MiB), or 'auto'"),
        ({"memory_limit_bytes": "-1"}, InvalidArgument, "parameter 'memory_limit_bytes': failed to convert '-1'"),
        ({"precision": "fp16"}, InvalidArgument, "the precision of an engine is set when it is built"),
        ({"memory_limit_bytes": "0"}, InvalidArgument, "parameter 'memory_limit_bytes' is 0, it must be a number of bytes"),
        ({"enable_multi_device": "maybe"}, InvalidArgument, "parameter 'enable_multi_device': failed to convert 'maybe'"),
        ({"enable_multi_device": "True"}, Unsupported, "multi-device engines (enable_multi_device) are not supported"),
    ],
)  # fmt: skip
def test_invalid_settings_are_rejected(parameters, kind, text):
    with pytest.raises(TritonError) as caught:
        settings(**parameters)
    assert type(caught.value) is kind
    assert text in caught.value.message
