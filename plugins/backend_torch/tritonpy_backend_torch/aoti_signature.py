"""The signature of an AOTInductor package: the structure that it was called with, and what its source checks of its inputs. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tritonpy_backend_torch.signature import Place, Signature, TensorInfo
from tritonpy_backend_torch.tree_spec import input_name, leaves, output_name

_CHECK = re.compile(r"\bcheck_input_(\d+)\(\s*AtenTensorHandle\* input_handles\s*\)\s*\{(.*?)\n\}", re.DOTALL)
_DTYPE = re.compile(r"_expected_dtype = aoti_torch_dtype_(\w+)\(\)")
_FIXED = re.compile(r"if \((\d+) != \w+_size\[(\d+)\]\)")
_BOUND = re.compile(r"if \(\w+_size\[(\d+)\] [<>] \d+\)")
_DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip


def input_infos(source: str) -> list[TensorInfo] | None:
    """Return the input tensors that the source of a package checks, None where it has no checks that are understood."""
    found = {int(match[1]): _info(match[2]) for match in _CHECK.finditer(source)}
    infos = [found.get(number) for number in range(len(found))]
    known = [info for info in infos if info is not None]
    return known if known and len(known) == len(infos) else None


def _info(body: str) -> TensorInfo | None:
    dtype = _DTYPE.search(body)
    datatype = _DATATYPES.get(dtype[1]) if dtype is not None else None
    dims = {int(match[1]): -1 for match in _BOUND.finditer(body)}
    dims.update({int(match[2]): int(match[1]) for match in _FIXED.finditer(body)})
    if datatype is None or sorted(dims) != list(range(len(dims))):
        return None
    return TensorInfo(datatype, tuple([dims[axis] for axis in range(len(dims))]))


def aoti_signature(
    in_spec: str, out_spec: str, infos: Sequence[TensorInfo] | None, program: Signature | None = None
) -> Signature:
    """Return the signature under Triton's names; `program` is that of the exported program where the package brings it along.

    The outputs are without types and shapes unless `program` tells them.
    """
    ways_in, ways_out = leaves(in_spec), leaves(out_spec)
    if program is not None:
        return _renamed(program, [input_name(keys) for keys in ways_in], [output_name(keys) for keys in ways_out])
    told = infos is not None and len(infos) == len(ways_in)
    inputs = [
        Place((input_name(keys), f"INPUT__{number}"), infos[number] if told and infos is not None else None)
        for number, keys in enumerate(ways_in)
    ]
    outputs = [Place((output_name(keys), f"OUTPUT__{number}")) for number, keys in enumerate(ways_out)]
    return Signature(tuple(inputs), tuple(outputs))


def _renamed(program: Signature, inputs: Sequence[str], outputs: Sequence[str]) -> Signature:
    """Return the tensors of `program` with the structural name in front: constants were compiled in."""
    pairs_in = [(place, name) for place, name in zip(program.inputs, inputs, strict=True) if place.names]
    pairs_out = zip(program.outputs, outputs, strict=True)
    return Signature(
        tuple([_first(place, name) for place, name in pairs_in]),
        tuple([_first(place, name) for place, name in pairs_out]),
        program.most_rows,
    )


def _first(place: Place, name: str) -> Place:
    return Place((name, *[other for other in place.names if other != name]), place.info)
