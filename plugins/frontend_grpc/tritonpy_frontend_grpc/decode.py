"""ModelInferRequest -> InferRequest. Pure; knows no transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tritonpy import ITEMSIZES, InferRequest, InvalidArgument, NotFound, OutputSpec, Sink, Tensor, now_ns
from tritonpy_frontend_grpc.contents import contents_bytes
from tritonpy_frontend_grpc.parameters import NONE_GIVEN, parse_parameters
from tritonpy_frontend_grpc.regions import Region, parse_region
from tritonpy_frontend_grpc.version import parse_version

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

    InputTensor = ModelInferRequest.InferInputTensor
    RequestedOutput = ModelInferRequest.InferRequestedOutputTensor

UNKNOWN_DATATYPE = "<invalid>"  # how a request names a data type that does not exist; no model expects it


def decode_request(message: ModelInferRequest, sink: Sink) -> InferRequest:
    """Return the request that `message` carries; its tensors are views on the bytes that arrived.

    Raises InvalidArgument where the message contradicts itself, NotFound for a shared-memory region that is not there.
    Whether it fits the model is the engine's to check.
    """
    received_ns = now_ns()
    version = parse_version(message.model_version)
    parameters = parse_parameters(message.parameters) if message.parameters else NONE_GIVEN
    inputs = _inputs(message)
    outputs = _outputs(message) if message.outputs else None
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
        received_ns=received_ns,
    )


def _inputs(message: ModelInferRequest) -> dict[str, Tensor]:
    raws = list(message.raw_input_contents)  # once: each access to an element builds a new bytes object
    inputs: dict[str, Tensor] = {}
    taken = 0
    for given in message.inputs:
        name, datatype = given.name, given.datatype
        if given.parameters:
            _refuse_region(given, message.model_name)
        if given.HasField("contents"):
            data = _contents(given, bool(raws), message.model_name)
        elif taken < len(raws):
            data = raws[taken]
            taken += 1
        else:
            raise InvalidArgument(
                f"unable to find data for input tensor '{name}' for model '{message.model_name}' in request."
            )
        if name in inputs:
            raise InvalidArgument(f"input '{name}' already exists in request").with_request_id(message.id)
        shape = tuple(given.shape)
        if datatype in ITEMSIZES:
            inputs[name] = Tensor.from_buffer(name, datatype, shape, data)
        else:
            inputs[name] = Tensor(name, UNKNOWN_DATATYPE, shape, np.frombuffer(data, np.uint8))
    return inputs


def _contents(given: InputTensor, has_raws: bool, model: str) -> bytes:
    if has_raws:
        raise InvalidArgument(
            f"contents field must not be specified when using raw_input_contents for '{given.name}' for model '{model}'"
        )
    datatype = given.datatype if given.datatype in ITEMSIZES else UNKNOWN_DATATYPE
    return contents_bytes(given.contents, datatype, given.name, model)


def _refuse_region(given: InputTensor, model: str) -> None:
    region = parse_region(given.parameters, given.name)
    if region is None:
        return
    if given.HasField("contents"):
        raise InvalidArgument(
            "unexpected 'content' provided when using shared memory for input tensor "
            f"'{given.name}' for model '{model}'"
        )
    raise _no_such(region)


def _no_such(region: Region) -> NotFound:
    # No region can be registered with this server, so none is ever found.
    return NotFound(f"Unable to find shared memory region: '{region.name}'")


def _outputs(message: ModelInferRequest) -> dict[str, OutputSpec]:
    outputs: dict[str, OutputSpec] = {}
    for asked in message.outputs:
        name = asked.name
        if name in outputs:
            raise InvalidArgument(f"output '{name}' already exists in request").with_request_id(message.id)
        outputs[name] = _output_spec(asked) if asked.parameters else OutputSpec(name)
    return outputs


def _output_spec(asked: RequestedOutput) -> OutputSpec:
    region = parse_region(asked.parameters, asked.name)
    classes = 0
    if "classification" in asked.parameters:
        parameter = asked.parameters["classification"]
        if parameter.WhichOneof("parameter_choice") != "int64_param":
            raise InvalidArgument("invalid value type for 'classification' parameter, expected int64_param")
        classes = parameter.int64_param
        if classes <= 0:
            raise InvalidArgument("invalid value for 'classification' parameter, expected >= 0")
        if region is not None:
            raise InvalidArgument("output can't set both 'shared_memory_region' and 'classification'")
    if region is not None:
        raise _no_such(region)
    return OutputSpec(asked.name, classes)
