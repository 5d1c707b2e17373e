from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_tf.settings import model_settings
from tritonpy_testing import model_config


def settings(text="", **parameters):
    return model_settings(model_config(f'name: "m" {text}'), parameters)


def test_without_parameters_the_defaults_apply():
    found = settings()
    assert (found.intra_op_threads, found.inter_op_threads, found.own_threads) == (0, 0, False)
    assert (found.jit_level, found.share_count, found.keras_safe_mode, found.memory_limit) == (
        "DEFAULT",
        None,
        None,
        None,
    )
    assert (found.graph_tag, found.signature, found.init_ops_file, found.op_libraries) == (
        "",
        "",
        "",
        (),
    )


def test_threads_are_read():
    found = settings(TF_NUM_INTRA_THREADS="3", TF_NUM_INTER_THREADS="5")
    assert (found.intra_op_threads, found.inter_op_threads) == (3, 5)


@pytest.mark.parametrize(
    ("parameters", "own"),
    [
        ({"TF_NUM_INTER_THREADS": "5"}, True),
        ({"TF_NUM_INTER_THREADS": "1"}, False),
        ({"TF_NUM_INTER_THREADS": "5", "TF_USE_PER_SESSION_THREADS": "off"}, False),
        ({"TF_USE_PER_SESSION_THREADS": "On"}, True),
    ],
)
def test_a_thread_count_implies_a_session_pool_by_default(parameters, own):
    assert settings(**parameters).own_threads is own


@pytest.mark.parametrize(
    ("level", "jit"), [(-1, "OFF"), (0, "DEFAULT"), (1, "ON_1"), (2, "ON_2"), (7, "ON_2")]
)
def test_the_graph_level_turns_xla_on_and_off(level, jit):
    assert settings(f"optimization {{ graph {{ level: {level} }} }}").jit_level == jit


def test_names_and_files_are_read():
    found = settings(
        'model_operations { op_library_filename: "a.so" op_library_filename: "b.so" }',
        TF_GRAPH_TAG="gpu", TF_SIGNATURE_DEF="s", TF_INIT_OPS_FILE="i.json", KERAS_SAFE_MODE="false",
        MAX_SESSION_SHARE_COUNT="2", memory_limit_bytes="1kB",
    )  # fmt: skip
    assert (found.graph_tag, found.signature, found.init_ops_file) == ("gpu", "s", "i.json")
    assert (found.keras_safe_mode, found.share_count, found.memory_limit) == (False, 2, 1000)
    assert found.op_libraries == ("a.so", "b.so")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("TF_NUM_INTRA_THREADS", "-1", "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number for TensorFlow model 'm'"),
        ("TF_NUM_INTRA_THREADS", "x", "parameter 'TF_NUM_INTRA_THREADS': failed to convert 'x' to integral number (such as 4)"),
        ("TF_NUM_INTRA_THREADS", "4097", "parameter 'TF_NUM_INTRA_THREADS' is 4097, it must be at most 4096"),
        ("TF_NUM_INTER_THREADS", "4097", "parameter 'TF_NUM_INTER_THREADS' is 4097, it must be at most 4096"),
        ("MAX_SESSION_SHARE_COUNT", "0", "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model 'm'"),
        ("memory_limit_bytes", "0", "parameter 'memory_limit_bytes' is 0, it must be a number of bytes of at least 1"),
        ("TF_USE_PER_SESSION_THREADS", "yes", "parameter 'TF_USE_PER_SESSION_THREADS': failed to convert 'yes' to boolean (true, on, 1, false, off, 0)"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_rejected_with_tritons_text(key, value, text):
    with pytest.raises(InvalidArgument) as caught:
        settings(**{key: value})
    assert caught.value.message == text
