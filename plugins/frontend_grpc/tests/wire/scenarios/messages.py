"""Messages of the inference service as bytes."""

from __future__ import annotations

import numpy as np

from tritonpy_protos import grpc_service_pb2 as pb


def infer_request(model="identity", request_id="", data=b"1234", **fields):
    """Return a ModelInferRequest with one tensor of bytes."""
    message = pb.ModelInferRequest(model_name=model, id=request_id, raw_input_contents=[data], **fields)
    message.inputs.add(name="X", datatype="UINT8", shape=[len(data)])
    return message.SerializeToString()


def read_response(raw):
    """Return id and data of a ModelInferResponse."""
    message = pb.ModelInferResponse.FromString(raw)
    return message.id, np.frombuffer(message.raw_output_contents[0], np.uint8).tolist()
