"""Reader for the signature of a SavedModel file that does not need TensorFlow.

Importing TensorFlow takes seconds and 300 MB. Only the required fields are declared here, with
TensorFlow's field numbers; the parser skips the rest, such as the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from tritonpy import Internal
from tritonpy_backend_tf.signature import (
    TF_TYPES,
    Signature,
    TensorInfo,
    protocol_datatype,
    type_name,
)

DEFAULT_TAG = "serve"
DEFAULT_SIGNATURE = "serving_default"
# operations that TensorFlow stores as signatures
_NO_SIGNATURES = {"__saved_model_init_op", "__saved_model_train_op"}
_PACKAGE = "tritonpy_backend_tf"
_Field = tuple[str, int, str]  # name, number, type; a type ending in "*" is repeated
_MESSAGES: Mapping[str, Sequence[_Field]] = {
    "SavedModel": [("meta_graphs", 2, "MetaGraph*")],
    "MetaGraph": [("meta_info_def", 1, "MetaInfo"), ("signature_def", 5, "SignatureEntry*")],
    "MetaInfo": [("tags", 4, "string*")],
    "SignatureEntry": [("key", 1, "string"), ("value", 2, "SignatureDef")],
    "SignatureDef": [("inputs", 1, "TensorEntry*"), ("outputs", 2, "TensorEntry*")],
    "TensorEntry": [("key", 1, "string"), ("value", 2, "TensorInfo")],
    "TensorInfo": [
        ("name", 1, "string"), ("dtype", 2, "DataType"), ("tensor_shape", 3, "Shape"),
        ("coo_sparse", 4, "Sparse"), ("composite_tensor", 5, "Composite"),
    ],
    "Sparse": [
        ("values_tensor_name", 1, "string"), ("indices_tensor_name", 2, "string"),
        ("dense_shape_tensor_name", 3, "string"),
    ],
    "Composite": [("components", 2, "TensorInfo*")],
    "Shape": [("dim", 2, "Dim*"), ("unknown_rank", 3, "bool")],
    "Dim": [("size", 1, "int64")],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServedSignature:
    """The signature to serve, with its name and the tags of its graph."""

    tags: tuple[str, ...]
    name: str
    signature: Signature


def read_served_signature(
    folder: Path, model: str, tag: str = "", signature: str = ""
) -> ServedSignature:
    """Return the signature `signature` of the graph with the comma-separated tags `tag`.

    Empty strings select the defaults. Without a default signature, the first other one is used.
    Raises `Internal` for an invalid file, and for unknown names; the error lists the known ones.
    """
    parsed = _parse_file(folder)
    graph = _graph(parsed.meta_graphs, model, tag or DEFAULT_TAG)
    definitions = {
        entry.key: entry.value for entry in graph.signature_def if entry.key not in _NO_SIGNATURES
    }
    name = signature or DEFAULT_SIGNATURE
    if name not in definitions and not signature and definitions:
        name = min(definitions)
    if name not in definitions:
        raise Internal(
            f"unable to load model '{model}', expected '{name}' signature, there is: "
            f"{_listed(definitions)}"
        )
    definition = definitions[name]
    inputs, outputs = (
        _read_infos(definition.inputs, "input", model),
        _read_infos(definition.outputs, "output", model),
    )
    whole = all(entry.value.name for entry in definition.outputs)
    return ServedSignature(
        tuple(graph.meta_info_def.tags), name, Signature(inputs, outputs, outputs_have_rows=whole)
    )


def _graph(graphs: Iterable[Any], model: str, tag: str) -> Any:
    wanted = set(tag.split(","))
    by_tags = {",".join(sorted(graph.meta_info_def.tags)): graph for graph in graphs}
    for tags, graph in by_tags.items():
        if set(tags.split(",")) == wanted:
            return graph
    raise Internal(
        f"unable to load model '{model}', expected '{tag}' tag, there is: {_listed(by_tags)}"
    )


def _read_infos(entries: Iterable[Any], what: str, model: str) -> dict[str, TensorInfo]:
    infos: dict[str, TensorInfo] = {}
    for entry in sorted(entries, key=lambda each: each.key):
        for number, part in enumerate(_parts(entry.value)):
            name = f"{entry.key}_{number}" if number else entry.key
            if name in infos:
                raise Internal(
                    f"unable to process {what} '{entry.key}' for '{model}', "
                    f"its component '{name}' has the name of another input or output"
                )
            infos[name] = _info(name, part, what, model)
    return infos


def _parts(info: Any) -> Sequence[Any]:
    """Return the tensors of one entry: several for a ragged or sparse tensor.

    They have the order in which TensorFlow flattens such inputs.
    """
    if info.HasField("composite_tensor"):
        return [
            part for component in info.composite_tensor.components for part in _parts(component)
        ]
    if not info.HasField("coo_sparse"):
        return [info]
    sparse, rank, number = info.coo_sparse, len(info.tensor_shape.dim), _number("DT_INT64")
    kind = type(info)
    indices = kind(
        name=sparse.indices_tensor_name,
        dtype=number,
        tensor_shape={"dim": [{"size": -1}, {"size": rank}]},
    )
    values = kind(
        name=sparse.values_tensor_name, dtype=info.dtype, tensor_shape={"dim": [{"size": -1}]}
    )
    shape = kind(
        name=sparse.dense_shape_tensor_name, dtype=number, tensor_shape={"dim": [{"size": rank}]}
    )
    return [indices, values, shape]


def _number(wanted: str) -> int:
    return next(number for number, name in TF_TYPES.items() if name == wanted)


def _info(name: str, info: Any, what: str, model: str) -> TensorInfo:
    datatype = protocol_datatype(info.dtype)
    if datatype is None:
        raise Internal(
            f"unable to process {what} '{name}' for '{model}', unsupported datatype "
            f"'{type_name(info.dtype)}'"
        )
    shape = info.tensor_shape
    dims = None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
    return TensorInfo(datatype, dims, info.name)


def _parse_file(folder: Path) -> Any:
    message = _message_class()()
    binary, text = folder / "saved_model.pb", folder / "saved_model.pbtxt"
    try:
        if binary.is_file():
            message.ParseFromString(binary.read_bytes())
        elif text.is_file():
            text_format.Parse(text.read_bytes(), message, allow_unknown_field=True)
        else:
            raise Internal(
                f"{folder} is not a SavedModel: it must be a folder with a file saved_model.pb "
                "or saved_model.pbtxt"
            )
    except (DecodeError, text_format.ParseError) as error:
        raise Internal(
            f"{binary if binary.is_file() else text} is not a valid SavedModel: {error}"
        ) from error
    return message


@cache
def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="saved_model_signature.proto", package=_PACKAGE, syntax="proto3"
    )
    types = file.enum_type.add(name="DataType")
    types.value.add(name="DT_INVALID", number=0)
    for number, name in TF_TYPES.items():
        types.value.add(name=name, number=number)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            _describe(message.field.add(name=field, number=number), kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.SavedModel"))


def _describe(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    name = kind.removesuffix("*")
    field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
    plain = {"string": field.TYPE_STRING, "bool": field.TYPE_BOOL, "int64": field.TYPE_INT64}
    if name in plain:
        field.type = plain[name]
        return
    field.type = field.TYPE_ENUM if name == "DataType" else field.TYPE_MESSAGE
    field.type_name = f".{_PACKAGE}.{name}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"
