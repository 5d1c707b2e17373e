"""Pure construction of the signature of an AOTInductor package.

It uses the package's call structure and the input checks in its generated source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tritonpy_backend_torch.signature import Signature, TensorInfo, TensorSpec
from tritonpy_backend_torch.tree_spec import input_name, output_name, tree_leaves

_CHECK = re.compile(
    r"\bcheck_input_(\d+)\(\s*AtenTensorHandle\* input_handles\s*\)\s*\{(.*?)\n\}", re.DOTALL
)
_DTYPE = re.compile(r"_expected_dtype = aoti_torch_dtype_(\w+)\(\)")
_FIXED = re.compile(r"if \((\d+) != \w+_size\[(\d+)\]\)")
_BOUND = re.compile(r"if \(\w+_size\[(\d+)\] [<>] \d+\)")
_DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "float16": "FP16", "bfloat16": "BF16", "float32": "FP32",
    "float64": "FP64",
}  # fmt: skip


def input_infos(source: str) -> list[TensorInfo] | None:
    """Return the input tensors that the source of a package checks.

    Returns None if the source has no checks in a known form.
    """
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
    in_spec: str,
    out_spec: str,
    infos: Sequence[TensorInfo] | None,
    program: Signature | None = None,
) -> Signature:
    """Return the signature with Triton's names.

    `program` is the signature of the exported program, if the package contains it. Without it,
    outputs have no types and shapes.
    """
    input_paths, output_paths = tree_leaves(in_spec), tree_leaves(out_spec)
    if program is not None:
        return _with_structural_names(
            program,
            [input_name(keys) for keys in input_paths],
            [output_name(keys) for keys in output_paths],
        )
    has_infos = infos is not None and len(infos) == len(input_paths)
    inputs = [
        TensorSpec(
            (input_name(keys), f"INPUT__{number}"),
            infos[number] if has_infos and infos is not None else None,
        )
        for number, keys in enumerate(input_paths)
    ]
    outputs = [
        TensorSpec((output_name(keys), f"OUTPUT__{number}"))
        for number, keys in enumerate(output_paths)
    ]
    return Signature(tuple(inputs), tuple(outputs))


def _with_structural_names(
    program: Signature, inputs: Sequence[str], outputs: Sequence[str]
) -> Signature:
    """Return the tensors of `program` with their structural names first.

    Constants are compiled in.
    """
    pairs_in = [
        (spec, name) for spec, name in zip(program.inputs, inputs, strict=True) if spec.names
    ]
    pairs_out = zip(program.outputs, outputs, strict=True)
    return Signature(
        tuple([_with_first_name(spec, name) for spec, name in pairs_in]),
        tuple([_with_first_name(spec, name) for spec, name in pairs_out]),
        program.max_rows,
    )


def _with_first_name(spec: TensorSpec, name: str) -> TensorSpec:
    return TensorSpec((name, *[other for other in spec.names if other != name]), spec.info)
