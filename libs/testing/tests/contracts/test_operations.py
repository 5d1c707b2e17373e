from __future__ import annotations

import pytest

from tritonpy import hookimpl
from tritonpy.frontend import Operation, OperationGroup
from tritonpy_testing import OperationGroupContract


class EchoOperations(OperationGroup):
    """One operation that returns its arguments."""

    def operations(self):
        return {
            Operation("tell", "PUT", "echo/{name}", "Return the body."): lambda call: {
                "said": call.body
            }
        }


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_operations():
        return {"telling": EchoOperations}


class TestEchoOperations(OperationGroupContract):
    plugin_class = EchoOperations
    plugin = Plugin
    name = "telling"


class Empty(OperationGroup):
    def operations(self):
        return {}


class Buggy(OperationGroup):
    def operations(self):
        return {Operation("tell", "PUT", "told", "Say it."): lambda call: len(call.body)}


@pytest.mark.parametrize("broken", [Empty, Buggy])
def test_a_broken_operation_group_fails(broken, failures):
    contract = type("Contract", (OperationGroupContract,), {"plugin_class": broken})
    assert failures(contract) == {"test_operations_return_json_or_raise_triton_errors"}
