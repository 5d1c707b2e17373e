from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest


def test_discovery_loads_no_grpc():
    code = """
import sys, tritonpy_frontend_grpc
assert tritonpy_frontend_grpc.tritonpy_frontends() == {"grpc": "tritonpy_frontend_grpc.h2.frontend:H2GrpcFrontend"}
assert tritonpy_frontend_grpc.tritonpy_transports() == {"grpcio": "tritonpy_frontend_grpc.grpcio.transport:GrpcioTransport"}
assert not [name for name in sys.modules if name.split(".")[0] in ("grpc", "tritonpy_protos")], sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_package_is_an_entry_point():
    (found,) = entry_points(group="tritonpy", name="frontend-grpc")
    assert found.value == "tritonpy_frontend_grpc"


def test_the_codec_does_not_import_grpc():
    code = """
import sys
from tritonpy_frontend_grpc import decode, encode, layout_cache, management, parameters, service, shared_memory, status, stream, version
assert "grpc" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize(
    "order", [("tritonclient.grpc", "frontend"), ("frontend", "tritonclient.grpc")]
)
def test_the_client_may_be_imported_before_or_after(order):
    names = [
        "tritonpy_frontend_grpc.grpcio.frontend" if name == "frontend" else name for name in order
    ]
    code = f"""
import {names[0]}
import {names[1]}
import numpy as np
import tritonclient.grpc as client
from tritonpy import CallbackSink
from tritonpy_frontend_grpc.decode import decode_request
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest
tensor = client.InferInput("X", [2], "INT32").set_data_from_numpy(np.array([1, 2], np.int32))
built = client._utils._get_inference_request("m", [tensor], "", "7", None, 0, False, False, 0, None, None)
message = ModelInferRequest.FromString(built.SerializeToString())
assert decode_request(message, CallbackSink(print)).inputs["X"].data.tolist() == [1, 2]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
