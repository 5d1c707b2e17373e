from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, NotFound, Unavailable, Unsupported
from tritonpy_frontend_grpc.management import BLOCKING, MANAGEMENT, model_ready_or_error
from tritonpy_protos import METHODS
from tritonpy_protos import grpc_service_pb2 as pb

from .fake_engine import FakeEngine

STRING = pb.ModelRepositoryParameter(string_param="{}")
BYTES = pb.ModelRepositoryParameter(bytes_param=b"\x00\xff")


def test_every_handler_returns_the_type_of_its_method():
    engine = FakeEngine()
    methods = {method.name: method for method in METHODS}
    for name, function in MANAGEMENT.items():
        message = (
            methods[name].request(name="identity")
            if name == "ModelReady"
            else methods[name].request()
        )
        assert isinstance(function(engine, message), methods[name].response)
    assert set(MANAGEMENT) >= BLOCKING


def test_statistics_are_complete():
    found = MANAGEMENT["ModelStatistics"](
        FakeEngine(), pb.ModelStatisticsRequest(name="m", version="2")
    ).model_stats[0]
    assert (found.name, found.version, found.last_inference) == ("m", "1", 1_700_000_000_000)
    assert (found.inference_count, found.execution_count) == (9, 3)
    kinds = [
        "success",
        "fail",
        "queue",
        "compute_input",
        "compute_infer",
        "compute_output",
        "cache_hit",
        "cache_miss",
    ]
    assert [getattr(found.inference_stats, kind).count for kind in kinds] == list(range(8))
    assert found.inference_stats.cache_miss.ns == 2**40
    assert found.response_stats["0"].cancel.ns == 2
    assert (found.batch_stats[0].batch_size, found.batch_stats[0].compute_output.count) == (4, 1)
    assert (
        found.memory_usage[0].type,
        found.memory_usage[0].id,
        found.memory_usage[0].byte_size,
    ) == ("GPU", 1, 2**33)


def test_the_version_text_reaches_the_engine_as_a_number():
    engine = FakeEngine()
    MANAGEMENT["ModelStatistics"](engine, pb.ModelStatisticsRequest())
    MANAGEMENT["ModelReady"](engine, pb.ModelReadyRequest(name="identity", version="7"))
    assert engine.calls == [("statistics", "", -1), ("is_model_ready", "identity", 7)]


def test_metadata_and_index_match_the_engine():
    metadata = MANAGEMENT["ModelMetadata"](FakeEngine(), pb.ModelMetadataRequest(name="m"))
    assert (metadata.name, list(metadata.versions), metadata.platform) == (
        "m",
        ["1", "3"],
        "onnxruntime_onnx",
    )
    assert [(item.name, item.datatype, list(item.shape)) for item in metadata.outputs] == [
        ("X", "FP32", [-1, 4]),
        ("Y", "BYTES", []),
    ]
    index = MANAGEMENT["RepositoryIndex"](FakeEngine(), pb.RepositoryIndexRequest())
    assert [(line.name, line.version, line.state) for line in index.models] == [
        ("identity", "1", "READY"),
        ("never", "", ""),
    ]
    assert (
        len(
            MANAGEMENT["RepositoryIndex"](
                FakeEngine(), pb.RepositoryIndexRequest(ready=True)
            ).models
        )
        == 1
    )


def test_load_and_unload_pass_their_parameters():
    engine = FakeEngine()
    load, unload = MANAGEMENT["RepositoryModelLoad"], MANAGEMENT["RepositoryModelUnload"]
    load(engine, pb.RepositoryModelLoadRequest(model_name="m"))
    load(
        engine,
        pb.RepositoryModelLoadRequest(
            model_name="m", parameters={"config": STRING, "file:1/x": BYTES}
        ),
    )
    dependents = {"unload_dependents": pb.ModelRepositoryParameter(bool_param=True)}
    unload(engine, pb.RepositoryModelUnloadRequest(model_name="m", parameters=dependents))
    unload(engine, pb.RepositoryModelUnloadRequest(model_name="m"))
    versions = {"versions": pb.ModelRepositoryParameter(string_param="3,1")}
    load(engine, pb.RepositoryModelLoadRequest(model_name="m", parameters=versions))
    unload(engine, pb.RepositoryModelUnloadRequest(model_name="m", parameters=versions))
    assert engine.calls == [
        ("load_model", "m", None, None), ("load_model", "m", "{}", {"file:1/x": b"\x00\xff"}),
        ("unload_model", "m", True), ("unload_model", "m", False),
        ("load_model", "m", None, None, [1, 3]), ("unload_model", "m", False, [1, 3]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message", "kind", "text"),
    [
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(parameters={"config": BYTES}), InvalidArgument,
         "invalid value type for load parameter 'config', expected string_param."),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(parameters={"file:a": STRING}), InvalidArgument,
         "invalid value type for load parameter 'file:a', expected bytes_param."),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(parameters={"k": STRING}), InvalidArgument,
         "unrecognized load parameter 'k'."),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(parameters={"unload_dependents": STRING}), InvalidArgument,
         "invalid value type for 'unload_dependents' parameter, expected bool_param."),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(parameters={"versions": BYTES}), InvalidArgument,
         "invalid value type for load parameter 'versions', expected string_param."),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(parameters={"versions": BYTES}), InvalidArgument,
         "invalid value type for 'versions' parameter, expected string_param."),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(parameters={"versions": STRING}), InvalidArgument,
         "parameter 'versions' must be version numbers with commas between them, such as '3' or '1,3', got '{}'"),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(repository_name="r"), Unsupported,
         "'repository_name' specification is not supported"),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(repository_name="r"), Unsupported,
         "'repository_name' specification is not supported"),
        ("RepositoryIndex", pb.RepositoryIndexRequest(repository_name="r"), Unsupported,
         "'repository_name' specification is not supported"),
    ],
)  # fmt: skip
def test_invalid_parameters_have_tritons_error_texts(name, message, kind, text):
    engine = FakeEngine()
    with pytest.raises(kind) as refusal:
        MANAGEMENT[name](engine, message)
    assert refusal.value.message == text
    assert engine.calls == []


class UnreadyEngine(FakeEngine):
    """An engine whose readiness check raises an error."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def is_model_ready(self, name, version=-1):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgument("Request for unknown model: 'm' is not found"),
        NotFound("version 7 is not found"),
    ],
)
def test_an_unknown_model_or_version_is_not_ready(error):
    message = pb.ModelReadyRequest(name="m", version="7")
    assert MANAGEMENT["ModelReady"](UnreadyEngine(error), message) == pb.ModelReadyResponse(
        ready=False
    )
    with pytest.raises(type(error)):
        model_ready_or_error(UnreadyEngine(error), message)


def test_a_version_that_is_no_number_and_a_server_that_is_not_ready_are_errors():
    with pytest.raises(InvalidArgument, match="details: stol"):
        MANAGEMENT["ModelReady"](FakeEngine(), pb.ModelReadyRequest(name="identity", version="x"))
    with pytest.raises(Unavailable):
        MANAGEMENT["ModelReady"](
            UnreadyEngine(Unavailable("Server not ready")), pb.ModelReadyRequest(name="identity")
        )
