"""Calls tensor methods and module functions, selected by WHAT; returns results or errors."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils

CONFIG = {
    "input": [{"name": "A", "data_type": "TYPE_FP32"}],
    "output": [{"name": "B", "data_type": "TYPE_STRING"}],
    "model_transaction_policy": {"decoupled": True},
}
NAMES = """
    InferenceRequest InferenceResponse Logger MetricFamily ModelConfig PreferredMemory TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END TRITONSERVER_REQUEST_FLAG_SEQUENCE_START TRITONSERVER_REQUEST_RELEASE_ALL
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITON_STRING_TO_NUMPY Tensor TritonError
    TritonModelException deserialize_bytes_tensor get_input_config_by_name get_input_tensor_by_name get_model_dir get_output_config_by_name
    get_output_tensor_by_name is_model_ready load_model numpy_to_triton_type serialize_byte_tensor triton_string_to_numpy
    triton_to_numpy_type unload_model using_decoupled_model_transaction_policy
"""
REQUEST = """
    async_exec correlation_id exec flags get_response_sender inputs is_cancelled parameters request_id requested_output_names set_flags
    set_release_flags timeout trace
"""
LOGGER = "ERROR INFO LogLevel VERBOSE WARNING log log_error log_info log_verbose log_warn"


def seen(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), [repr(one) for one in value.ravel().tolist()]]
    if isinstance(value, type):
        return f"type {np.dtype(value).name}"
    return f"{type(value).__name__} {value!r}"


def tensor(values=(1.0, 2.0), kind=np.float32):
    return pb_utils.Tensor("T", np.array(values, kind))


def codes():
    names = (
        "UNKNOWN",
        "INTERNAL",
        "NOT_FOUND",
        "INVALID_ARG",
        "UNAVAILABLE",
        "UNSUPPORTED",
        "ALREADY_EXISTS",
        "CANCELLED",
    )
    return [
        [name, str(getattr(pb_utils.TritonError, name)), int(getattr(pb_utils.TritonError, name))]
        for name in names
    ]


def error(*arguments):
    made = pb_utils.TritonError(*arguments)
    return [made.message(), str(made.code()), int(made.code()), isinstance(made, Exception)]


def response():
    made = pb_utils.InferenceResponse([tensor()])
    return [made.has_error(), made.error(), [one.name() for one in made.output_tensors()]]


def error_response():
    made = pb_utils.InferenceResponse(
        error=pb_utils.TritonError("bad", pb_utils.TritonError.NOT_FOUND)
    )
    return [
        made.has_error(),
        made.error().message(),
        str(made.error().code()),
        made.output_tensors(),
    ]


def constants():
    names = (
        "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START", "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END", "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
        "TRITONSERVER_REQUEST_RELEASE_ALL", "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE", "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU",
    )  # fmt: skip
    return [[name, str(getattr(pb_utils, name)), int(getattr(pb_utils, name))] for name in names]


def missing(owner, names):
    return [name for name in names.split() if not hasattr(owner, name)]


def types():
    names = (
        "Tensor",
        "InferenceRequest",
        "InferenceResponse",
        "TritonError",
        "TritonModelException",
        "Logger",
        "MetricFamily",
        "PreferredMemory",
    )
    return [
        [name, getattr(pb_utils, name).__module__, getattr(pb_utils, name).__qualname__]
        for name in names
    ]


def serialized():
    data = pb_utils.serialize_byte_tensor(np.array([b"one", b"", "zw\u00f6lf", 3], np.object_))
    return [type(data).__name__, bytes(data).hex()]


def deserialized():
    return seen(
        pb_utils.deserialize_bytes_tensor(
            b"\x03\x00\x00\x00one\x00\x00\x00\x00\x01\x00\x00\x00\xff"
        )
    )


def numpy_of_types():
    return [seen(pb_utils.triton_to_numpy_type(number)) for number in range(16)]


def types_of_numpy():
    kinds = (
        bool,
        np.uint8,
        np.int64,
        np.float16,
        np.float32,
        np.float64,
        np.object_,
        np.bytes_,
        np.complex64,
        np.str_,
    )
    return [pb_utils.numpy_to_triton_type(kind) for kind in kinds]


def same_array():
    made = tensor()
    return [made.as_numpy() is made.as_numpy(), np.shares_memory(made.as_numpy(), made.as_numpy())]


def given_array_is_copied():
    array = np.zeros(2, np.float32)
    made = pb_utils.Tensor("T", array)
    array[0] = 5
    return made.as_numpy().tolist()


def model_dir():  # the function does not exist yet while this module is imported
    return pb_utils.get_model_dir()


ACTIONS = {
    "name": lambda: tensor().name(),
    "shape": lambda: [str(type(tensor().shape())), list(tensor().shape())],
    "triton_dtype": lambda: [
        str(tensor(kind=kind).triton_dtype()) for kind in ("?", "u1", "i8", "f2", "f8", "O", "S3")
    ],
    "dtype of text": lambda: str(pb_utils.Tensor("T", np.array(["a"])).triton_dtype()),
    "is_cpu": lambda: tensor().is_cpu(),
    "as_numpy": lambda: seen(tensor().as_numpy()),
    "as_numpy of strings": lambda: seen(tensor([b"a", "\u00f6", 3], np.object_).as_numpy()),
    "as_numpy of fixed bytes": lambda: seen(tensor([b"a\x00", b"bc"], "S2").as_numpy()),
    "dlpack device": lambda: list(tensor().__dlpack_device__()),
    "dlpack to numpy": lambda: seen(np.from_dlpack(tensor())),
    "dlpack of strings": lambda: type(tensor([b"a"], np.object_).to_dlpack()).__name__,
    "dlpack of bools": lambda: type(tensor([True], "?").to_dlpack()).__name__,
    "dlpack capsule": lambda: type(tensor().to_dlpack()).__name__,
    "from capsule": lambda: seen(pb_utils.Tensor.from_dlpack("T", tensor().to_dlpack()).as_numpy()),
    "from tensor": lambda: seen(pb_utils.Tensor.from_dlpack("T", tensor()).as_numpy()),
    "same array": same_array,
    "given array is copied": given_array_is_copied,
    "from tensor without name": lambda: pb_utils.Tensor.from_dlpack("", tensor()),
    "codes": codes,
    "error": lambda: error("text"),
    "error with code": lambda: error("text", pb_utils.TritonError.UNAVAILABLE),
    "response": response,
    "error response": error_response,
    "constants": constants,
    "public names": lambda: missing(pb_utils, NAMES),
    "members of Tensor": lambda: missing(
        pb_utils.Tensor, "as_numpy from_dlpack is_cpu name shape to_dlpack triton_dtype"
    ),
    "members of InferenceRequest": lambda: missing(pb_utils.InferenceRequest, REQUEST),
    "members of InferenceResponse": lambda: missing(
        pb_utils.InferenceResponse, "error has_error output_tensors parameters"
    ),
    "members of Logger": lambda: missing(pb_utils.Logger, LOGGER),
    "members of MetricFamily": lambda: missing(
        pb_utils.MetricFamily, "COUNTER GAUGE HISTOGRAM Metric"
    ),
    "members of TritonError": lambda: missing(pb_utils.TritonError, "code message"),
    "types": types,
    "exception is an exception": lambda: [
        issubclass(pb_utils.TritonModelException, Exception),
        str(pb_utils.TritonModelException("text")),
    ],
    "serialize": serialized,
    "serialize nothing": lambda: seen(pb_utils.serialize_byte_tensor(np.array([], np.object_))),
    "serialize numbers": lambda: seen(pb_utils.serialize_byte_tensor(np.zeros(2, np.int32))),
    "serialize fixed bytes": lambda: bytes(
        pb_utils.serialize_byte_tensor(np.array([b"ab", b"c"]))
    ).hex(),
    "deserialize": deserialized,
    "deserialize nothing": lambda: seen(pb_utils.deserialize_bytes_tensor(b"")),
    "deserialize too short": lambda: seen(
        pb_utils.deserialize_bytes_tensor(b"\x05\x00\x00\x00abc")
    ),
    "deserialize no length": lambda: seen(pb_utils.deserialize_bytes_tensor(b"\x05\x00")),
    "numpy of types": numpy_of_types,
    "types of numpy": types_of_numpy,
    "numpy of a string type": lambda: [
        seen(pb_utils.triton_string_to_numpy(f"TYPE_{kind}"))
        for kind in ("BOOL", "INT8", "FP16", "STRING")
    ],
    "numpy of an unknown type": lambda: pb_utils.triton_string_to_numpy("TYPE_STRANGE"),
    "numpy of bf16": lambda: pb_utils.triton_string_to_numpy("TYPE_BF16"),
    "input config": lambda: pb_utils.get_input_config_by_name(CONFIG, "A"),
    "input config that is not there": lambda: pb_utils.get_input_config_by_name(CONFIG, "B"),
    "output config": lambda: pb_utils.get_output_config_by_name(CONFIG, "B"),
    "decoupled policy": lambda: pb_utils.using_decoupled_model_transaction_policy(CONFIG),
    "no decoupled policy": lambda: pb_utils.using_decoupled_model_transaction_policy({}),
    "model dir": model_dir,
    "unknown attribute": lambda: pb_utils.no_such_name,
    "preferred memory": lambda: (
        type(pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)).__name__
    ),
}


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        what = pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0].decode()
        try:
            result = {"returned": ACTIONS[what]()}
        except Exception as error:
            result = {"raised": type(error).__name__, "text": str(error)}
        text = json.dumps(result, default=seen).encode()
        return pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", np.array([text], np.object_))])
