"""Response of the bare gRPC servers."""

from __future__ import annotations

from tritonpy_protos import grpc_service_pb2 as pb


def infer(message: bytes) -> bytes:
    """Return the inputs of a request as its outputs."""
    request = pb.ModelInferRequest.FromString(message)
    response = pb.ModelInferResponse(model_name=request.model_name, model_version="1")
    for name, tensor in zip(("OUTPUT0", "OUTPUT1"), request.inputs, strict=False):
        response.outputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
    response.raw_output_contents.extend(request.raw_input_contents)
    return response.SerializeToString()
