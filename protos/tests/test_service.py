from __future__ import annotations

import pytest

from tritonpy_protos import METHODS, SERVICE, grpc_service_pb2

NAMES = [method.name for method in METHODS]


def test_the_service_has_the_name_that_clients_call() -> None:
    assert SERVICE == "inference.GRPCInferenceService"


def test_a_method_has_its_path_and_messages() -> None:
    infer = METHODS[NAMES.index("ModelInfer")]
    assert infer.path == "/inference.GRPCInferenceService/ModelInfer"
    assert infer.request is grpc_service_pb2.ModelInferRequest
    assert infer.response is grpc_service_pb2.ModelInferResponse


def test_only_the_stream_method_streams_and_it_does_so_both_ways() -> None:
    assert [(m.name, m.server_streaming) for m in METHODS if m.client_streaming] == [
        ("ModelStreamInfer", True)
    ]
    assert sum(method.server_streaming for method in METHODS) == 1


@pytest.mark.parametrize(
    "rpc", ["ServerLive", "RepositoryIndex", "CudaSharedMemoryRegister", "LogSettings"]
)
def test_every_group_of_methods_exists(rpc: str) -> None:
    assert rpc in NAMES
    assert len(NAMES) == 20
