"""Decoding of `ModelInferRequest` into `InferRequest`. Independent of the transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy import (
    DTYPES,
    InferRequest,
    InvalidArgument,
    OutputSpec,
    Tensor,
    encode_strings,
    now_ns,
)
from tritonpy.frontend import ITEMSIZES, RegionSlice, Sink
from tritonpy_frontend_grpc.parameters import NONE_GIVEN, parse_parameters
from tritonpy_frontend_grpc.version import parse_version

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import (
        InferParameter,
        InferTensorContents,
        ModelInferRequest,
    )

    InputTensor = ModelInferRequest.InferInputTensor
    RequestedOutput = ModelInferRequest.InferRequestedOutputTensor

UNKNOWN_DATATYPE = "<invalid>"  # stands for an unknown datatype; no model expects it
# Each field with its datatypes. The last one is the type of the field; the others are widened to
# it.
_FIELDS = (
    ("bool_contents", ("BOOL",)),
    ("int_contents", ("INT8", "INT16", "INT32")),
    ("int64_contents", ("INT64",)),
    ("uint_contents", ("UINT8", "UINT16", "UINT32")),
    ("uint64_contents", ("UINT64",)),
    ("fp32_contents", ("FP32",)),
    ("fp64_contents", ("FP64",)),
    ("bytes_contents", ("BYTES",)),
)
_UINT64 = 2**64 - 1  # signed in the protocol, unsigned in the server


def decode_request(message: ModelInferRequest, sink: Sink) -> InferRequest:
    """Return the request in `message`; its tensors are views on the received bytes.

    Raises InvalidArgument if the message is inconsistent. The engine validates it against the
    model.
    """
    received_ns = now_ns()
    version = parse_version(message.model_version)
    parameters = parse_parameters(message.parameters) if message.parameters else NONE_GIVEN
    inputs, uses_regions = _inputs(message)
    outputs = None
    if message.outputs:
        outputs, writes_regions = _outputs(message)
        uses_regions = uses_regions or writes_regions
    return InferRequest(
        message.model_name,
        inputs,
        sink,
        version,
        message.id,
        outputs,
        parameters.custom,
        parameters.priority,
        parameters.timeout_us,
        sequence=parameters.sequence,
        classifies=outputs is not None and any([spec.classification for spec in outputs.values()]),
        uses_regions=uses_regions,
        received_ns=received_ns,
    )


def _inputs(message: ModelInferRequest) -> tuple[dict[str, Tensor], bool]:
    """Return the tensors, and whether any of them is in shared memory."""
    raws = list(
        message.raw_input_contents
    )  # copied once: each access to an element creates a bytes object
    inputs: dict[str, Tensor] = {}
    taken, uses_regions = 0, False
    for given in message.inputs:
        name, datatype = given.name, given.datatype
        data: bytes | RegionSlice | None = (
            _region(given, message.model_name) if given.parameters else None
        )
        if data is not None:
            uses_regions = True
        elif given.HasField("contents"):
            data = _contents(given, bool(raws), message.model_name)
        elif taken < len(raws):
            data = raws[taken]
            taken += 1
        else:
            raise InvalidArgument(
                f"unable to find data for input tensor '{name}' for model '{message.model_name}' "
                "in request."
            )
        if name in inputs:
            raise InvalidArgument(f"input '{name}' already exists in request").with_request_id(
                message.id
            )
        shape = tuple(given.shape)
        if datatype not in ITEMSIZES:
            array = data if isinstance(data, RegionSlice) else np.frombuffer(data, np.uint8)
            inputs[name] = Tensor(name, UNKNOWN_DATATYPE, shape, array)
        elif isinstance(data, RegionSlice):
            inputs[name] = Tensor(name, datatype, shape, data)
        else:
            inputs[name] = Tensor.from_buffer(name, datatype, shape, data)
    if taken < len(raws) and message.inputs:
        raise InvalidArgument(
            f"the request has {len(raws)} raw_input_contents for {taken} inputs without shared "
            "memory "
            f"for model '{message.model_name}'"
        )
    return inputs, uses_regions


def _contents(given: InputTensor, has_raws: bool, model: str) -> bytes:
    if has_raws:
        raise InvalidArgument(
            "contents field must not be specified when using raw_input_contents for "
            f"'{given.name}' for model '{model}'"
        )
    datatype = given.datatype if given.datatype in ITEMSIZES else UNKNOWN_DATATYPE
    return contents_bytes(given.contents, datatype, given.name, model)


def _region(given: InputTensor, model: str) -> RegionSlice | None:
    region = parse_region(given.parameters, given.name)
    if region is not None and given.HasField("contents"):
        raise InvalidArgument(
            "unexpected 'content' provided when using shared memory for input tensor "
            f"'{given.name}' for model '{model}'"
        )
    return region


def _outputs(message: ModelInferRequest) -> tuple[dict[str, OutputSpec], bool]:
    """Return the requested outputs, and whether any of them goes to shared memory."""
    outputs: dict[str, OutputSpec] = {}
    uses_regions = False
    for output in message.outputs:
        name = output.name
        if name in outputs:
            raise InvalidArgument(f"output '{name}' already exists in request").with_request_id(
                message.id
            )
        if output.parameters:
            outputs[name] = _output_spec(output)
            uses_regions = uses_regions or bool(outputs[name].region)
        else:
            outputs[name] = OutputSpec(name)
    return outputs, uses_regions


def _output_spec(output: RequestedOutput) -> OutputSpec:
    region = parse_region(output.parameters, output.name)
    classes = 0
    if "classification" in output.parameters:
        parameter = output.parameters["classification"]
        if parameter.WhichOneof("parameter_choice") != "int64_param":
            raise InvalidArgument(
                "invalid value type for 'classification' parameter, expected int64_param"
            )
        classes = parameter.int64_param
        if classes <= 0:
            raise InvalidArgument("invalid value for 'classification' parameter, expected >= 0")
        if region is not None:
            raise InvalidArgument(
                "output can't set both 'shared_memory_region' and 'classification'"
            )
    if region is not None:
        return OutputSpec(
            output.name, region=region.name, offset=region.offset, byte_size=region.byte_size
        )
    return OutputSpec(output.name, classes)


def contents_bytes(contents: InferTensorContents, datatype: str, name: str, model: str) -> bytes:
    """Return the elements of `contents` in wire format.

    `name` and `model` are for error texts only.

    INT8, INT16, UINT8 and UINT16 keep the low bytes of the 32-bit numbers that carry them.
    Raises InvalidArgument if a field does not match `datatype` or several fields have elements.
    """
    found: bytes | None = None
    for field, datatypes in _FIELDS:
        elements = getattr(contents, field)
        if not elements:
            continue
        unexpected = (
            f"unexpected explicit tensor data for input tensor '{name}' for model '{model}'"
        )
        if found:
            raise InvalidArgument(f"{unexpected}, binary data was already supplied.")
        if datatype not in datatypes:
            raise InvalidArgument(
                f"{unexpected} of type '{datatypes[-1]}', expected datatype '{datatype}'"
            )
        found = _wire_form(elements, datatype, datatypes[-1])
    return found or b""


def _wire_form(elements: Sequence[Any], datatype: str, carrier: str) -> bytes:
    if datatype == "BYTES":
        return encode_strings(elements).tobytes()
    return np.array(elements, DTYPES[carrier]).astype(DTYPES[datatype], copy=False).tobytes()


def parse_region(parameters: Mapping[str, InferParameter], tensor: str) -> RegionSlice | None:
    """Return the shared memory slice in the parameters of `tensor`, or None.

    Raises InvalidArgument.
    """
    if "shared_memory_region" not in parameters:
        for key in ("shared_memory_offset", "shared_memory_byte_size"):
            if key in parameters:
                raise InvalidArgument(
                    f"'{key}' can not be specified without 'shared_memory_region' parameter for "
                    f"tensor '{tensor}'"
                )
        return None
    region = parameters["shared_memory_region"]
    if region.WhichOneof("parameter_choice") != "string_param":
        raise _wrong_type("shared_memory_region", tensor, "string_param")
    offset = (
        _integer(parameters, "shared_memory_offset", tensor)
        if "shared_memory_offset" in parameters
        else 0
    )
    if "shared_memory_byte_size" not in parameters:
        raise InvalidArgument(
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' "
            "parameter "
            f"for tensor '{tensor}'"
        )
    return RegionSlice(
        region.string_param, offset, _integer(parameters, "shared_memory_byte_size", tensor)
    )


def _integer(parameters: Mapping[str, InferParameter], key: str, tensor: str) -> int:
    if parameters[key].WhichOneof("parameter_choice") != "int64_param":
        raise _wrong_type(key, tensor, "int64_param")
    return parameters[key].int64_param & _UINT64


def _wrong_type(key: str, tensor: str, expected: str) -> InvalidArgument:
    return InvalidArgument(
        f"invalid value type for '{key}' parameter for tensor '{tensor}', expected {expected}."
    )
