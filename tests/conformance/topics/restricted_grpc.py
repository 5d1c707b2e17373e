"""gRPC calls that need metadata: every category, with and without it."""

from __future__ import annotations

from dataclasses import replace

from google.protobuf.message import Message

from tests.conformance.exchange import Exchange, Grpc, Stream, topic
from tests.conformance.inference import Inference, given, streamed
from tritonpy_protos import grpc_service_pb2 as pb

PREFIX = "triton-grpc-protocol-"
SECRET = (f"{PREFIX}key", "v=1")
OTHER = (f"{PREFIX}health-key", "well")
INFERENCE = Inference("echo_request", {"IN": given("INT32", 7)}, outputs=("REQUEST",))
CALLS: dict[str, Message] = {
    "ServerLive": pb.ServerLiveRequest(),
    "ServerReady": pb.ServerReadyRequest(),
    "ModelReady": pb.ModelReadyRequest(name="echo_request"),
    "ServerMetadata": pb.ServerMetadataRequest(),
    "ModelMetadata": pb.ModelMetadataRequest(name="echo_request"),
    "ModelInfer": INFERENCE.message(),
    "ModelConfig": pb.ModelConfigRequest(name="echo_request"),
    "ModelStatistics": pb.ModelStatisticsRequest(name="never_there"),
    "RepositoryIndex": pb.RepositoryIndexRequest(ready=True),
    "RepositoryModelLoad": pb.RepositoryModelLoadRequest(model_name="never_there"),
    "RepositoryModelUnload": pb.RepositoryModelUnloadRequest(model_name="never_there"),
    "SystemSharedMemoryStatus": pb.SystemSharedMemoryStatusRequest(),
    "SystemSharedMemoryUnregister": pb.SystemSharedMemoryUnregisterRequest(),
    "CudaSharedMemoryStatus": pb.CudaSharedMemoryStatusRequest(),
    "TraceSetting": pb.TraceSettingRequest(model_name="never_there"),
}
WRONG = {
    "without the prefix": (("key", "v=1"),),
    "wrong value": ((SECRET[0], "v=2"),),
    "value in capitals": ((SECRET[0], "V=1"),),
    "no value": ((SECRET[0], ""),),
    "key of another": (OTHER,),
    "second of two": ((SECRET[0], "v=2"), SECRET),
}
STREAM = streamed(INFERENCE.named(id="1"), INFERENCE.named(id="2"))


def stream(name: str, *metadata: tuple[str, str]) -> Exchange:
    return Exchange(f"stream: {name}", (replace(STREAM, metadata=metadata),))


def never_read() -> Stream:
    return Stream((pb.ModelInferRequest(model_name="never_there"),))


TOPIC = topic(
    "restricted_grpc",
    "echo_request",
    [
        *(Exchange(f"{name}: without", (Grpc(name, message),)) for name, message in CALLS.items()),
        *(
            Exchange(f"{name}: with", (Grpc(name, message, metadata=(SECRET, OTHER)),))
            for name, message in CALLS.items()
            if name != "ServerMetadata"  # it contains the server's name
        ),
        *(
            Exchange(name, (Grpc("ModelConfig", CALLS["ModelConfig"], metadata=given),))
            for name, given in WRONG.items()
        ),
        *(
            Exchange(
                f"inference: {name}", (Grpc("ModelInfer", INFERENCE.message(), metadata=given),)
            )
            for name, given in WRONG.items()
        ),
        *(stream(name, *given) for name, given in WRONG.items()),
        Exchange(
            "first of two",
            (Grpc("ModelConfig", CALLS["ModelConfig"], metadata=(SECRET, (SECRET[0], "v=2"))),),
        ),
        Exchange(
            "message that is refused unread",
            (Grpc("ModelConfig", pb.ModelConfigRequest(version="x")),),
        ),
        stream("with", SECRET),
        Exchange("stream: without", (never_read(),)),
        Exchange(
            "stream: refused requests are not counted",
            (STREAM, replace(STREAM, metadata=(SECRET,))),
            {"echo_request": 2},
        ),
    ],
    flags=(
        f"--grpc-restricted-protocol=health:health-key={OTHER[1]}",
        "--grpc-restricted-protocol=metadata,inference,model-config,model-repository,statistics,shared-memory,trace,logging:key=v=1",
    ),
)
