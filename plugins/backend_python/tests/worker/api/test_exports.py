"""The two modules that models import."""

from __future__ import annotations

import c_python_backend_utils
import pytest
import triton_python_backend_utils as pb_utils

TRITONS = [
    "InferenceRequest", "InferenceResponse", "Logger", "MetricFamily", "ModelConfig", "PreferredMemory",
    "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START", "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE", "TRITONSERVER_RESPONSE_COMPLETE_FINAL", "TRITON_STRING_TO_NUMPY",
    "Tensor", "TritonError", "TritonModelException", "deserialize_bytes_tensor", "get_input_config_by_name",
    "get_input_tensor_by_name", "get_model_dir", "get_output_config_by_name", "get_output_tensor_by_name",
    "is_model_ready", "load_model", "numpy_to_triton_type", "serialize_byte_tensor", "triton_string_to_numpy",
    "triton_to_numpy_type", "unload_model", "using_decoupled_model_transaction_policy",
]  # fmt: skip
TRITONS_IN_C = [
    "COUNTER", "GAUGE", "HISTOGRAM", "InferenceRequest", "InferenceResponse", "InferenceResponseSender", "InferenceTrace",
    "Logger", "MemoryType", "Metric", "MetricFamily", "MetricKind", "PreferredMemory", "ResponseIterator",
    "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "Tensor", "TritonError", "TritonModelException",
    "SharedMemory", "is_model_ready", "load_model", "shared_memory", "unload_model",
]  # fmt: skip


@pytest.mark.parametrize("name", TRITONS)
def test_all_names_of_triton_exist(name):
    assert name in pb_utils.__all__
    assert hasattr(pb_utils, name)


@pytest.mark.parametrize("name", TRITONS_IN_C)
def test_all_names_of_tritons_built_in_module_exist(name):
    assert name in c_python_backend_utils.__all__
    assert getattr(c_python_backend_utils, name) is getattr(
        pb_utils, name, getattr(c_python_backend_utils, name)
    )


def test_classes_have_tritons_module():
    for kind in (
        pb_utils.Tensor,
        pb_utils.InferenceRequest,
        pb_utils.TritonError,
        c_python_backend_utils.Metric,
    ):
        assert kind.__module__ == "c_python_backend_utils"
        assert getattr(c_python_backend_utils, kind.__name__) is kind
    assert str(pb_utils.InferenceResponse) == "<class 'c_python_backend_utils.InferenceResponse'>"


def test_flags_have_tritons_numbers():
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START == 1
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END == 2
    assert pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE == 2
