"""The contract of groups of management operations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy.api.operation import Operation, OperationCall, OperationGroup
from tritonpy.engine.operations import Operations
from tritonpy.errors import TritonError
from tritonpy.testing.contracts.plugin import PluginContract
from tritonpy.testing.toy_engine import ToyEngine

STRANGE_BODIES: Sequence[object] = (None, [], {}, "text", -1, {"no-such-member": {"": None}}, {"a": [1e300, True, ""]})


def check_operations(operations: Operations) -> None:
    """Call each operation with what nobody expects; raises AssertionError where something but plain JSON or a TritonError comes back."""
    for operation in operations.listed():
        assert operation.summary.endswith("."), f"the summary of '{operation.name}' is no sentence"
        for body in STRANGE_BODIES:
            _check(operations, operation, body)


def _check(operations: Operations, operation: Operation, body: object) -> None:
    call = OperationCall(dict.fromkeys(operation.parameters, "nobody"), body, revision=7)
    try:
        answer = operations.call(operation.name, call)
    except TritonError as error:
        assert error.message, f"'{operation.name}' refuses without a word"
        return
    assert msgspec.json.decode(msgspec.json.encode(answer)) == answer, f"'{operation.name}' answers with more than JSON"


class OperationGroupContract(PluginContract):
    """What `OperationGroup` promises. Give `plugin_class` and, in `options`, what it needs."""

    interface = OperationGroup
    hook = "tritonpy_operations"

    def test_it_answers_with_plain_json_or_says_what_is_wrong(self) -> None:
        with ToyEngine() as engine:
            group = self.plugin_class(self.make_options(), engine)
            operations = Operations()
            operations.offer(group.operations())
            assert operations.listed(), "a group without operations offers nothing"
            check_operations(operations)
            group.close()
