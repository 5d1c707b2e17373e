"""Pure reading of a torch.export program's signature from its archive, without PyTorch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_backend_torch.archive import LEGACY_PROGRAM, Records
from tritonpy_backend_torch.signature import ANY_ROWS, Signature, TensorInfo, TensorSpec
from tritonpy_backend_torch.tree_spec import Keys, input_name, output_name, tree_leaves

# Element types by their numbers in the archive, without those that the protocol does not support.
_DATATYPES = {
    1: "UINT8", 2: "INT8", 3: "INT16", 4: "INT32", 5: "INT64", 6: "FP16", 7: "FP32", 8: "FP64",
    12: "BOOL", 13: "BF16", 28: "UINT16", 34: "UINT32", 35: "UINT64",
}  # fmt: skip
_SYMBOL = re.compile(r"(?:Symbol\('(\w+)'.*\)|(\w+))")
Program = Mapping[str, Any]


def program_of(found: Records) -> Program:
    """Return the program in an archive.

    Raises `InvalidArgument` if it has several programs and none is named `model`.
    """
    names = [name for name in found.below("models/") if name.endswith(".json")]
    name = LEGACY_PROGRAM if LEGACY_PROGRAM in found else "models/model.json"
    if name not in found:
        raise InvalidArgument(
            f"the archive has no program named 'model', it has: {', '.join(map(_stem, names))}"
        )
    program: Program = json.loads(found.read(name))
    return program


def _stem(record: str) -> str:
    return f"'{record.removeprefix('models/').removesuffix('.json')}'"


def exported_signature(program: Program) -> Signature:
    """Return the signature of `program`; raise `InvalidArgument` for unsupported structures."""
    module = program["graph_module"]
    call = next(entry["signature"] for entry in module["module_call_graph"] if not entry["fqn"])
    graph, tensors = module["signature"], module["graph"]["tensor_values"]
    given = _arguments(graph["input_specs"], ("user_input", "constant_input"))
    results = _arguments(graph["output_specs"], ("user_output",))
    input_paths, output_paths = tree_leaves(call["in_spec"]), tree_leaves(call["out_spec"])
    names = _argument_names(call.get("forward_arg_names") or [], input_paths)
    inputs = _inputs(input_paths, given, names, tensors)
    outputs = [
        TensorSpec((*_result_names(keys, number), output_name(keys)), _info(result, tensors))
        for number, (keys, result) in enumerate(zip(output_paths, results, strict=True))
    ]
    used = [argument for argument in given if "as_tensor" in argument] + results
    return Signature(inputs, tuple(outputs), _max_rows(used, tensors, program["range_constraints"]))


def _arguments(specs: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the arguments that callers pass or receive: tensors by name, constants by value."""
    found = [spec[kind] for spec in specs for kind in kinds if kind in spec]
    return [each["value"] if "value" in each else each["arg"] for each in found]


def _inputs(
    paths: Sequence[Keys],
    given: Sequence[Mapping[str, Any]],
    names: Mapping[Keys, tuple[str, ...]],
    tensors: Mapping[str, Any],
) -> tuple[TensorSpec, ...]:
    specs, ordinal = [], 0
    for keys, argument in zip(paths, given, strict=True):
        if "as_tensor" in argument:
            known = (*names.get(keys, ()), input_name(keys), f"INPUT__{ordinal}")
            specs.append(TensorSpec(known, _info(argument, tensors)))
            ordinal += 1
        else:
            specs.append(
                TensorSpec(
                    (),
                    required=False,
                    default=None if "as_none" in argument else next(iter(argument.values())),
                )
            )
    return tuple(specs)


def _argument_names(names: Sequence[str], paths: Sequence[Keys]) -> dict[Keys, tuple[str, ...]]:
    """Return the name of the `forward` argument for each leaf that is a whole argument."""
    positional: dict[Keys, tuple[str, ...]] = {
        (0, number): (name,) for number, name in enumerate(names)
    }
    by_keyword: dict[Keys, tuple[str, ...]] = {
        keys: (str(keys[1]),) for keys in paths if len(keys) == 2 and keys[0] == 1
    }
    return {keys: name for keys, name in {**positional, **by_keyword}.items() if keys in paths}


def _result_names(keys: Keys, number: int) -> tuple[str, ...]:
    ordinal = f"OUTPUT__{number}"
    return (keys[0], ordinal) if len(keys) == 1 and isinstance(keys[0], str) else (ordinal,)


def _info(argument: Mapping[str, Any], tensors: Mapping[str, Any]) -> TensorInfo | None:
    meta = _meta(argument, tensors)
    if meta is None or meta["dtype"] not in _DATATYPES:
        return None
    return TensorInfo(
        _DATATYPES[meta["dtype"]], tuple([size.get("as_int", -1) for size in meta["sizes"]])
    )


def _meta(argument: Mapping[str, Any], tensors: Mapping[str, Any]) -> Mapping[str, Any] | None:
    tensor = argument.get("as_tensor")
    return None if tensor is None else tensors[tensor["name"]]


def _max_rows(
    arguments: Sequence[Mapping[str, Any]],
    tensors: Mapping[str, Any],
    ranges: Mapping[str, Mapping[str, Any]],
) -> int:
    """Return the largest batch.

    It is 0 unless all tensors share one dynamic first dimension that may be 1.
    """
    leading = {_leading(_meta(argument, tensors)) for argument in arguments}
    symbol = leading.pop() if len(leading) == 1 else None
    if symbol is None:
        return 0
    limits = ranges.get(symbol, {})
    least, most = limits.get("min_val"), limits.get("max_val")
    return 0 if (least or 0) > 1 else ANY_ROWS if most is None or most < 0 else int(most)


def _leading(meta: Mapping[str, Any] | None) -> str | None:
    if meta is None or not meta["sizes"]:
        return None
    expression = meta["sizes"][0].get("as_expr")
    found = _SYMBOL.fullmatch(expression["expr_str"]) if expression is not None else None
    return None if found is None else found[1] or found[2]
