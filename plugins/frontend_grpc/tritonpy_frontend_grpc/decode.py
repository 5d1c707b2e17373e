"""Decoding of `ModelInferRequest` into `InferRequest`. Independent of the transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tritonpy import ITEMSIZES, InferRequest, InvalidArgument, OutputSpec, RegionSlice, Sink, Tensor, now_ns
from tritonpy_frontend_grpc.contents import contents_bytes
from tritonpy_frontend_grpc.parameters import NONE_GIVEN, parse_parameters
from tritonpy_frontend_grpc.regions import parse_region
from tritonpy_frontend_grpc.version import parse_version

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

    InputTensor = ModelInferRequest.InferInputTensor
    RequestedOutput = ModelInferRequest.InferRequestedOutputTensor

UNKNOWN_DATATYPE = "<invalid>"  # stands for an unknown datatype; no model expects it


def decode_request(message: ModelInferRequest, sink: Sink) -> InferRequest:
    """Return the request in `message`; its tensors are views on the received bytes.

    Raises InvalidArgument if the message is inconsistent. The engine validates it against the model.
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
    raws = list(message.raw_input_contents)  # copied once: each access to an element creates a bytes object
    inputs: dict[str, Tensor] = {}
    taken, uses_regions = 0, False
    for given in message.inputs:
        name, datatype = given.name, given.datatype
        data: bytes | RegionSlice | None = _region(given, message.model_name) if given.parameters else None
        if data is not None:
            uses_regions = True
        elif given.HasField("contents"):
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
        if datatype not in ITEMSIZES:
            array = data if isinstance(data, RegionSlice) else np.frombuffer(data, np.uint8)
            inputs[name] = Tensor(name, UNKNOWN_DATATYPE, shape, array)
        elif isinstance(data, RegionSlice):
            inputs[name] = Tensor(name, datatype, shape, data)
        else:
            inputs[name] = Tensor.from_buffer(name, datatype, shape, data)
    if taken < len(raws) and message.inputs:
        raise InvalidArgument(
            f"the request has {len(raws)} raw_input_contents for {taken} inputs without shared memory "
            f"for model '{message.model_name}'"
        )
    return inputs, uses_regions


def _contents(given: InputTensor, has_raws: bool, model: str) -> bytes:
    if has_raws:
        raise InvalidArgument(
            f"contents field must not be specified when using raw_input_contents for '{given.name}' for model '{model}'"
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
            raise InvalidArgument(f"output '{name}' already exists in request").with_request_id(message.id)
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
            raise InvalidArgument("invalid value type for 'classification' parameter, expected int64_param")
        classes = parameter.int64_param
        if classes <= 0:
            raise InvalidArgument("invalid value for 'classification' parameter, expected >= 0")
        if region is not None:
            raise InvalidArgument("output can't set both 'shared_memory_region' and 'classification'")
    if region is not None:
        return OutputSpec(output.name, region=region.name, offset=region.offset, byte_size=region.byte_size)
    return OutputSpec(output.name, classes)
