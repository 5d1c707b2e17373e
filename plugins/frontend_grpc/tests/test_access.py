from __future__ import annotations

import pytest
from google.protobuf.descriptor import FieldDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tritonpy import ApiCategory, PermissionDenied, Restriction, Unauthenticated, Unavailable, Verb
from tritonpy_frontend_grpc.access import RPCS, GrpcAccess
from tritonpy_protos import METHODS
from tritonpy_protos import grpc_service_pb2 as pb

from .doorkeeper import Doorkeeper

RESTRICTED = (Restriction((ApiCategory.METADATA, ApiCategory.INFERENCE), "Key", "v"),)
PATHS = {method.name: method.path for method in METHODS}


def test_every_method_of_every_service_has_its_line():
    others = [
        f"/{service.full_name}/{method.name}"
        for file in (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
    ]
    assert set(RPCS) >= {*PATHS.values(), *others}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_message_that_names_a_model_is_asked_for_it(method):
    texts = {field.name for field in method.request.DESCRIPTOR.fields if field.type == FieldDescriptor.TYPE_STRING}
    names = texts & {"model_name", "name"} if "SharedMemory" not in method.name else set()
    assert RPCS[method.path].model_field == "".join(names)


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("ServerMetadata", Verb.READ),
        ("RepositoryIndex", Verb.READ),
        ("SystemSharedMemoryRegister", Verb.ADMIN),
        ("CudaSharedMemoryStatus", Verb.ADMIN),
        ("LogSettings", Verb.ADMIN),
    ],
)
def test_what_concerns_the_server_is_decided_at_the_door(name, verb):
    keeper = Doorkeeper()
    GrpcAccess((), "", keeper).enter(PATHS[name], ())
    assert keeper.asked == [(verb, "")]


@pytest.mark.parametrize(
    ("name", "message", "verb"),
    [
        ("ModelMetadata", pb.ModelMetadataRequest(name="m"), Verb.READ),
        ("ModelConfig", pb.ModelConfigRequest(name="m"), Verb.READ),
        ("ModelStatistics", pb.ModelStatisticsRequest(name="m"), Verb.READ),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="m"), Verb.MANAGE),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="m"), Verb.MANAGE),
        ("TraceSetting", pb.TraceSettingRequest(model_name="m"), Verb.ADMIN),
    ],
)
def test_what_concerns_a_model_is_decided_with_its_message(name, message, verb):
    keeper = Doorkeeper()
    access = GrpcAccess((), "", keeper)
    access.enter(PATHS[name], ())
    assert keeper.asked == []
    access.admit(PATHS[name], (), message)
    assert keeper.asked == [(verb, "m")]


def test_an_unknown_caller_does_not_get_as_far_as_a_message():
    keeper = Doorkeeper()
    keeper.key = "k"
    access = GrpcAccess((), "", keeper)
    for method in METHODS:
        if RPCS[method.path].category is not ApiCategory.HEALTH:
            with pytest.raises(Unauthenticated):
                access.enter(method.path, ())
        access.enter(method.path, (("x-api-key", "k"), ("some-bin", b"\xff")))


def test_health_is_open_unless_it_is_guarded():
    keeper = Doorkeeper(PermissionDenied("no"))
    access = GrpcAccess((), "", keeper)
    for path in (PATHS["ServerLive"], PATHS["ServerReady"], "/grpc.health.v1.Health/Watch"):
        access.enter(path, ())
    access.admit(PATHS["ModelReady"], (), pb.ModelReadyRequest(name="m"))
    keeper.open_doors = ()
    for path in (PATHS["ServerLive"], "/grpc.health.v1.Health/Check"):
        with pytest.raises(PermissionDenied):
            access.enter(path, ())
    with pytest.raises(PermissionDenied):
        access.admit(PATHS["ModelReady"], (), pb.ModelReadyRequest(name="m"))


def test_a_method_that_the_table_lacks_is_for_administrators():
    keeper = Doorkeeper()
    GrpcAccess((), "", keeper).enter("/new.Service/Method", ())
    assert keeper.asked == [(Verb.ADMIN, "")]


def test_a_restricted_protocol_needs_its_header_before_anything_else():
    keeper = Doorkeeper()
    access = GrpcAccess(RESTRICTED, "", keeper)
    for metadata in ((), (("key", "v"),), (("triton-grpc-protocol-key", "w"),)):
        with pytest.raises(Unavailable) as caught:
            access.enter(PATHS["ServerMetadata"], metadata)
        assert caught.value.message == "This protocol is restricted, expecting header 'triton-grpc-protocol-Key'"
    assert keeper.asked == []
    access.enter(PATHS["ServerMetadata"], (("triton-grpc-protocol-key", "v"),))
    access.enter(PATHS["ModelConfig"], ())
