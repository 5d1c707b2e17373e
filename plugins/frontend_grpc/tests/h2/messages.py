"""Messages of the inference service as bytes, their frames, and the headers of calls."""

from __future__ import annotations

import numpy as np

from tritonpy_frontend_grpc.h2.message_frames import prefix
from tritonpy_protos import SERVICE
from tritonpy_protos import grpc_service_pb2 as pb


def infer_request(model="identity", request_id="", data=b"1234", **fields):
    """Return a ModelInferRequest with one tensor of bytes."""
    message = pb.ModelInferRequest(
        model_name=model, id=request_id, raw_input_contents=[data], **fields
    )
    message.inputs.add(name="X", datatype="UINT8", shape=[len(data)])
    return message.SerializeToString()


def read_response(raw):
    """Return id and data of a ModelInferResponse."""
    message = pb.ModelInferResponse.FromString(raw)
    return message.id, np.frombuffer(message.raw_output_contents[0], np.uint8).tolist()


HEADERS = {
    b"host": b"x",
    b"content-type": b"application/grpc",
    b"te": b"trailers",
    b"user-agent": b"test",
}


def path_of(name: str) -> str:
    """Return the path of a method of the inference service, or of another one where `name` is a path."""
    return name if name.startswith("/") else f"/{SERVICE}/{name}"


def frame(message: bytes, compressed: int = 0) -> bytes:
    """Return the frame of a message."""
    return prefix(message, compressed) + message


def headers_of(
    changes: dict[str, bytes | None], metadata: tuple[tuple[bytes, bytes], ...]
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a call with `changes`: `_` stands for `-`, None removes a header."""
    changed = {name.replace("_", "-").encode(): value for name, value in changes.items()}
    kept = [(key, value) for key, value in {**HEADERS, **changed}.items() if value is not None]
    return [*kept, *metadata]
