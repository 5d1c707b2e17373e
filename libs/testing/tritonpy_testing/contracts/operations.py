"""The contract of groups of management operations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy import TritonError
from tritonpy.frontend import Operation, OperationCall, OperationGroup, Operations
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.toy_engine import ToyEngine

STRANGE_BODIES: Sequence[object] = (
    None,
    [],
    {},
    "text",
    -1,
    {"no-such-member": {"": None}},
    {"a": [1e300, True, ""]},
)


def check_operations(operations: Operations) -> None:
    """Call each operation with unexpected bodies.

    Raises AssertionError if the result is neither plain JSON nor a TritonError.
    """
    for operation in operations.listed():
        assert operation.summary.endswith("."), f"the summary of '{operation.name}' is no sentence"
        for body in STRANGE_BODIES:
            _check(operations, operation, body)


def _check(operations: Operations, operation: Operation, body: object) -> None:
    call = OperationCall(dict.fromkeys(operation.parameters, "unknown"), body, revision=7)
    try:
        result = operations.call(operation.name, call)
    except TritonError as error:
        assert error.message, f"'{operation.name}' raised an error without a text"
        return
    assert msgspec.json.decode(msgspec.json.encode(result)) == result, (
        f"'{operation.name}' returned values that are not JSON"
    )


class OperationGroupContract(PluginContract):
    """The contract of `OperationGroup`. Set `plugin_class` and its `options`."""

    interface = OperationGroup
    hook = "tritonpy_operations"

    def test_operations_return_json_or_raise_triton_errors(self) -> None:
        with ToyEngine() as engine:
            group = self.plugin_class(self.make_options(), engine)
            operations = Operations()
            operations.offer(group.operations())
            assert operations.listed(), "a group without operations offers nothing"
            check_operations(operations)
            group.close()
