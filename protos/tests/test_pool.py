from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message

from tritonpy_protos import POOL, grpc_service_pb2, model_config_pb2


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OURS = "from tritonpy_protos import grpc_service_pb2 as ours"
CLIENTS = "from tritonclient.grpc import service_pb2 as theirs"
EXCHANGE = """
sent = theirs.ModelInferRequest(model_name="m", raw_input_contents=[b"abc"])
got = ours.ModelInferRequest.FromString(sent.SerializeToString())
assert type(got) is not type(sent)
print(got.model_name, got.raw_input_contents[0])
"""


@pytest.mark.parametrize("implementation", ["upb", "python"])
@pytest.mark.parametrize(
    "imports", [(OURS, CLIENTS), (CLIENTS, OURS)], ids=["ours first", "tritonclient first"]
)
def test_works_with_tritonclient_in_either_import_order(
    imports: tuple[str, str], implementation: str
) -> None:
    code = "\n".join([*imports, EXCHANGE])
    assert run(code, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation) == "m b'abc'\n"


def test_nothing_is_registered_in_the_default_pool() -> None:
    code = """
from google.protobuf import descriptor_pool
import tritonpy_protos.model_config_pb2
try:
    descriptor_pool.Default().FindFileByName("model_config.proto")
except KeyError:
    print("private")
"""
    assert run(code) == "private\n"


def test_importing_loads_no_grpc() -> None:
    code = "import sys, tritonpy_protos.grpc_service_pb2; print([n for n in sys.modules if n.split('.')[0] == 'grpc'])"
    assert run(code) == "[]\n"


def test_files_keep_their_names_for_reflection() -> None:
    assert [file.name for file in POOL.FindFileByName("grpc_service.proto").dependencies] == [
        "model_config.proto"
    ]
    assert POOL is not descriptor_pool.Default()


def test_modules_look_like_those_that_protoc_writes() -> None:
    assert model_config_pb2.TYPE_FP32 == 11
    assert model_config_pb2.DataType.Name(11) == "TYPE_FP32"
    assert model_config_pb2.ModelInstanceGroup.KIND_CPU == 2
    assert model_config_pb2.ModelInstanceGroup.Kind.Value("KIND_CPU") == 2
    assert model_config_pb2.DESCRIPTOR.name == "model_config.proto"
    assert issubclass(grpc_service_pb2.ModelInferRequest.InferInputTensor, Message)


def test_messages_of_one_file_hold_those_of_the_other() -> None:
    config = model_config_pb2.ModelConfig(
        name="m", input=[model_config_pb2.ModelInput(name="x", dims=[-1, 3])]
    )
    response = grpc_service_pb2.ModelConfigResponse(config=config)
    assert type(response.config) is model_config_pb2.ModelConfig
    assert response.config == config


def test_messages_can_be_pickled() -> None:
    config = model_config_pb2.ModelConfig(name="m", max_batch_size=4)
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301
