"""The protocol that tritonclient was compiled from is a subset of this one, number by number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor
from tritonclient.grpc import model_config_pb2 as client_config
from tritonclient.grpc import service_pb2 as client_service

from tritonpy_protos import POOL


def messages(parent: FileDescriptor | Descriptor) -> Iterator[Descriptor]:
    top = isinstance(parent, FileDescriptor)
    for message in (parent.message_types_by_name if top else parent.nested_types_by_name).values():
        yield message
        yield from messages(message)


def fields(message: Descriptor) -> dict[str, descriptor_pb2.FieldDescriptorProto]:
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    for field in proto.field:
        field.ClearField("oneof_index")
        field.ClearField("json_name")  # set by some compilers only; it follows from the name
    return {field.name: field for field in proto.field}


def enums(file: FileDescriptor) -> Iterator[EnumDescriptor]:
    yield from file.enum_types_by_name.values()
    for message in messages(file):
        yield from message.enum_types


CLIENT_FILES = (client_config.DESCRIPTOR, client_service.DESCRIPTOR)
MESSAGES = [message for file in CLIENT_FILES for message in messages(file)]
ENUMS = [enum for file in CLIENT_FILES for enum in enums(file)]


@pytest.mark.parametrize("theirs", MESSAGES, ids=lambda message: message.full_name)
def test_every_field_has_the_same_number_type_and_oneof(theirs: Descriptor) -> None:
    ours = POOL.FindMessageTypeByName(theirs.full_name)
    mine = fields(ours)
    assert {name: mine.get(name) for name in fields(theirs)} == fields(theirs)
    for oneof in theirs.oneofs:
        assert {field.name for field in oneof.fields} <= {
            field.name for field in ours.oneofs_by_name[oneof.name].fields
        }


@pytest.mark.parametrize("theirs", ENUMS, ids=lambda enum: enum.full_name)
def test_every_enum_value_has_the_same_number(theirs: EnumDescriptor) -> None:
    ours = {value.name: value.number for value in POOL.FindEnumTypeByName(theirs.full_name).values}
    assert {(value.name, value.number) for value in theirs.values} <= ours.items()


def test_every_method_has_the_same_messages() -> None:
    theirs = client_service.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    ours = POOL.FindServiceByName(theirs.full_name).methods_by_name
    for method in theirs.methods:
        mine = ours[method.name]
        assert (mine.input_type.full_name, mine.output_type.full_name) == (
            method.input_type.full_name,
            method.output_type.full_name,
        )
        assert (mine.client_streaming, mine.server_streaming) == (
            method.client_streaming,
            method.server_streaming,
        )
