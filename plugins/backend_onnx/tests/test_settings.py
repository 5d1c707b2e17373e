from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument
from tritonpy_backend_onnx.settings import model_settings
from tritonpy_protos.model_config_pb2 import ModelConfig


def settings(text="", **parameters):
    return model_settings(
        text_format.Parse(text, ModelConfig()),
        {key.replace("__", "."): value for key, value in parameters.items()},
    )


def test_nothing_configured_leaves_the_defaults_and_threads_that_do_not_spin():
    found = settings()
    assert found.graph_level == "ORT_ENABLE_ALL"
    assert (found.parallel, found.intra_op_threads, found.inter_op_threads) == (False, 0, 0)
    assert (found.memory_arena, found.memory_pattern, found.run_entries, found.op_libraries) == (
        None,
        None,
        {},
        (),
    )
    assert set(found.session_entries.values()) == {"0"}
    assert set(found.session_entries) == {
        "session.intra_op.allow_spinning",
        "session.inter_op.allow_spinning",
    }


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (-1, "ORT_ENABLE_BASIC"),
        (0, "ORT_ENABLE_ALL"),
        (1, "ORT_ENABLE_EXTENDED"),
        (2, "ORT_DISABLE_ALL"),
        (9, "ORT_ENABLE_ALL"),
    ],
)
def test_the_graph_level_is_numbered_as_in_triton(level, name):
    assert settings(f"optimization {{ graph {{ level: {level} }} }}").graph_level == name


def test_every_parameter_is_read():
    found = settings(
        'model_operations { op_library_filename: "a.so" op_library_filename: "b.so" }',
        intra_op_thread_count="3", inter_op_thread_count="2", execution_mode="1", enable_mem_arena="0", enable_mem_pattern="true",
        session__use_device_allocator_for_initializers="1", memory__enable_memory_arena_shrinkage="cpu:0",
        session__intra_op__allow_spinning="1", unrelated="x",
    )  # fmt: skip
    assert (found.intra_op_threads, found.inter_op_threads, found.parallel) == (3, 2, True)
    assert (found.memory_arena, found.memory_pattern) == (False, True)
    assert found.session_entries["session.use_device_allocator_for_initializers"] == "1"
    assert found.session_entries["session.intra_op.allow_spinning"] == "1"
    assert found.run_entries == {"memory.enable_memory_arena_shrinkage": "cpu:0"}
    assert found.op_libraries == ("a.so", "b.so")


def test_a_negative_thread_count_leaves_the_default():
    assert settings(intra_op_thread_count="-2").intra_op_threads == 0


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (
            "intra_op_thread_count",
            "many",
            "parameter 'intra_op_thread_count': failed to convert 'many' to integral number (such as 4)",
        ),
        (
            "enable_mem_arena",
            "maybe",
            "parameter 'enable_mem_arena': failed to convert 'maybe' to boolean (true, on, 1, false, off, 0)",
        ),
        (
            "inter_op_thread_count",
            "4097",
            "parameter 'inter_op_thread_count' is 4097, it must be at most 4096",
        ),
        (
            "execution_mode",
            "2",
            "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 2 .",
        ),
    ],
)
def test_an_invalid_value_is_rejected(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        settings(**{key: value})
    assert caught.value.message == text
