from __future__ import annotations

import pytest
from google.protobuf.descriptor import FieldDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tritonpy import PermissionDenied, Unauthenticated, Unavailable
from tritonpy.auth import ApiCategory, Restriction, Verb
from tritonpy_frontend_grpc.access import RPCS, GrpcAccess
from tritonpy_protos import METHODS
from tritonpy_protos import grpc_service_pb2 as pb

from .recording_authorizer import RecordingAuthorizer

RESTRICTED = (Restriction((ApiCategory.METADATA, ApiCategory.INFERENCE), "Key", "v"),)
PATHS = {method.name: method.path for method in METHODS}


def test_the_table_covers_every_method():
    others = [
        f"/{service.full_name}/{method.name}"
        for file in (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
    ]
    assert set(RPCS) >= {*PATHS.values(), *others}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_table_has_the_model_field_of_each_message(method):
    texts = {
        field.name
        for field in method.request.DESCRIPTOR.fields
        if field.type == FieldDescriptor.TYPE_STRING
    }
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
def test_server_methods_are_authorized_before_the_message(name, verb):
    authorizer = RecordingAuthorizer()
    GrpcAccess((), "", authorizer).check_call(PATHS[name], ())
    assert authorizer.checks == [(verb, "")]


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
def test_model_methods_are_authorized_with_the_message(name, message, verb):
    authorizer = RecordingAuthorizer()
    access = GrpcAccess((), "", authorizer)
    access.check_call(PATHS[name], ())
    assert authorizer.checks == []
    access.check_message(PATHS[name], (), message)
    assert authorizer.checks == [(verb, "m")]


def test_an_unknown_principal_is_refused_before_the_message():
    authorizer = RecordingAuthorizer()
    authorizer.key = "k"
    access = GrpcAccess((), "", authorizer)
    for method in METHODS:
        if RPCS[method.path].category is not ApiCategory.HEALTH:
            with pytest.raises(Unauthenticated):
                access.check_call(method.path, ())
        access.check_call(method.path, (("x-api-key", "k"), ("some-bin", b"\xff")))


def test_health_is_public_unless_it_is_guarded():
    authorizer = RecordingAuthorizer(PermissionDenied("no"))
    access = GrpcAccess((), "", authorizer)
    for path in (PATHS["ServerLive"], PATHS["ServerReady"], "/grpc.health.v1.Health/Watch"):
        access.check_call(path, ())
    access.check_message(PATHS["ModelReady"], (), pb.ModelReadyRequest(name="m"))
    authorizer.public_endpoints = ()
    for path in (PATHS["ServerLive"], "/grpc.health.v1.Health/Check"):
        with pytest.raises(PermissionDenied):
            access.check_call(path, ())
    with pytest.raises(PermissionDenied):
        access.check_message(PATHS["ModelReady"], (), pb.ModelReadyRequest(name="m"))


def test_an_unlisted_method_needs_admin_rights():
    authorizer = RecordingAuthorizer()
    GrpcAccess((), "", authorizer).check_call("/new.Service/Method", ())
    assert authorizer.checks == [(Verb.ADMIN, "")]


def test_a_restricted_protocol_needs_its_header_before_anything_else():
    authorizer = RecordingAuthorizer()
    access = GrpcAccess(RESTRICTED, "", authorizer)
    for metadata in ((), (("key", "v"),), (("triton-grpc-protocol-key", "w"),)):
        with pytest.raises(Unavailable) as caught:
            access.check_call(PATHS["ServerMetadata"], metadata)
        assert (
            caught.value.message
            == "This protocol is restricted, expecting header 'triton-grpc-protocol-Key'"
        )
    assert authorizer.checks == []
    access.check_call(PATHS["ServerMetadata"], (("triton-grpc-protocol-key", "v"),))
    access.check_call(PATHS["ModelConfig"], ())
