"""The private descriptor pool of every message class of this package.

`tritonclient.grpc` registers files of the same names in protobuf's default pool, and a pool accepts
a file only once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message


def _filled_pool() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(
        (Path(__file__).parent / "inference.binpb").read_bytes()
    )
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)  # protoc writes a file after its imports
    return pool


POOL = _filled_pool()


def module_names(file_name: str, module: str) -> dict[str, Any]:
    """Return the names that protoc's module for a .proto file defines, for `module`."""
    file = POOL.FindFileByName(file_name)
    names: dict[str, Any] = {"DESCRIPTOR": file}
    for name, enum in file.enum_types_by_name.items():
        names[name] = EnumTypeWrapper(enum)
        names.update((value.name, value.number) for value in enum.values)
    for name, message in file.message_types_by_name.items():
        names[name] = _message_class(message, name, module)
    return names


def _message_class(message: Descriptor, path: str, module: str) -> type[Message]:
    # protoc's own helper also registers each message in the default pool if protobuf is pure Python
    made = message_factory.GetMessageClass(message)
    made.__module__ = module
    made.__qualname__ = path
    for name, nested in message.nested_types_by_name.items():
        setattr(made, name, _message_class(nested, f"{path}.{name}", module))
    return made
