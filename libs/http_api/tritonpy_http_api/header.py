"""The JSON header of an inference request.

Decoding is typed, with a slow path for Triton's error texts.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from tritonpy import Internal, InvalidArgument
from tritonpy_http_api import json_document as document

UInt = Annotated[int, msgspec.Meta(ge=0)]


class InputParameters(msgspec.Struct, gc=False):
    """The location of the data of an input, unless it is in `data`."""

    binary_data_size: UInt | UnsetType = UNSET
    shared_memory_region: str | UnsetType = UNSET
    shared_memory_offset: UInt = 0
    shared_memory_byte_size: UInt = 0


_NO_PARAMETERS = InputParameters()


class InputHeader(msgspec.Struct):
    """One input. Exactly one of `data`, a binary size and a region must be set."""

    name: str
    datatype: str
    shape: list[UInt]
    parameters: InputParameters | UnsetType = UNSET
    data: Any = UNSET


class OutputParameters(msgspec.Struct, gc=False):
    """The requested form of an output. If `binary_data` is unset, it is JSON."""

    binary_data: bool | UnsetType = UNSET
    classification: UInt | UnsetType = UNSET
    shared_memory_region: str | UnsetType = UNSET
    shared_memory_offset: UInt = 0
    shared_memory_byte_size: UInt = 0


class OutputHeader(msgspec.Struct, gc=False):
    """One requested output."""

    name: str
    parameters: OutputParameters | UnsetType = UNSET


class InferHeader(msgspec.Struct):
    """The complete JSON header. The values of `parameters` are checked when they are applied."""

    inputs: list[InputHeader]
    id: str = ""
    parameters: dict[str, Any] | UnsetType = UNSET
    outputs: list[OutputHeader] = []


_decode = msgspec.json.Decoder(InferHeader).decode


def read_header(raw: bytes | memoryview) -> InferHeader:
    """Return the JSON header of a request.

    Raises Internal, as Triton does, for invalid JSON and for members that are missing or of the
    wrong type.
    """
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _read_untyped(raw)
    except RecursionError:
        raise InvalidArgument(document.TOO_DEEP) from None


def check_one_source(given: InputHeader) -> None:
    """Raise InvalidArgument unless exactly one of `data`, a binary size and a region is set."""
    parameters = given.parameters or _NO_PARAMETERS
    sources = (
        ("'data'", given.data),
        ("'binary_data_size'", parameters.binary_data_size),
        ("'shared_memory_region'", parameters.shared_memory_region),
    )
    _refuse_sources([name for name, value in sources if value is not UNSET])


def _refuse_sources(found: list[str]) -> None:
    if len(found) != 1:
        state = f"set {' '.join(found)}" if found else "no field is set"
        raise InvalidArgument(
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            "'parameters', "
            f"'shared_memory_region' in 'parameters'. But {state}"
        )


def _read_untyped(raw: bytes | memoryview) -> InferHeader:
    root = document.parse(raw)
    identity = _read("id", document.as_string, root, "")
    parameters = root["parameters"] if document.has(root, "parameters") else UNSET
    if parameters is not UNSET and not isinstance(parameters, dict):
        raise Internal("failed to get request params.: attempt to get members for non-object")
    inputs = [_input(item) for item in _required("inputs", document.as_array, root)]
    outputs = [_output(item) for item in _read("outputs", document.as_array, root, [])]
    return InferHeader(inputs, identity, parameters, outputs)


def _required(name: str, accessor: Any, holder: Any) -> Any:
    try:
        return accessor(document.member(holder, name))
    except Internal as error:
        raise document.with_prefix(f"Unable to parse '{name}'", error) from None


def _read(
    name: str, accessor: Any, holder: Any, default: Any, words: str = "Unable to parse"
) -> Any:
    if not document.has(holder, name):
        return default
    try:
        return accessor(holder[name])
    except Internal as error:
        raise document.with_prefix(f"{words} '{name}'", error) from None


def _shape(value: Any) -> list[int]:
    return [document.as_uint(dim) for dim in document.as_array(value)]


def _input(item: Any) -> InputHeader:
    given = document.find(item, "parameters")
    places = ((item, "data"), (given, "binary_data_size"), (given, "shared_memory_region"))
    _refuse_sources([f"'{name}'" for holder, name in places if document.has(holder, name)])
    name = _required("name", document.as_string, item)
    datatype = _required("datatype", document.as_string, item)
    shape = _required("shape", _shape, item)
    parameters = InputParameters(
        _read("binary_data_size", document.as_uint, given, UNSET),
        _read("shared_memory_region", document.as_string, given, UNSET),
        _read("shared_memory_offset", document.as_uint, given, 0),
        _read("shared_memory_byte_size", document.as_uint, given, 0),
    )
    return InputHeader(name, datatype, shape, parameters, item.get("data", UNSET))


def _output(item: Any) -> OutputHeader:
    given = document.find(item, "parameters")
    words = "Unable to set" if document.has(given, "shared_memory_region") else "Unable to parse"
    name = _required("name", document.as_string, item)
    parameters = OutputParameters(
        _read("binary_data", document.as_bool, given, UNSET, words),
        _read("classification", document.as_uint, given, UNSET, "Unable to set"),
        _read("shared_memory_region", document.as_string, given, UNSET),
        _read("shared_memory_offset", document.as_uint, given, 0),
        _read("shared_memory_byte_size", document.as_uint, given, 0),
    )
    return OutputHeader(name, parameters)
