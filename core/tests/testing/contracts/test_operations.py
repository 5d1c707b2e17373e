from __future__ import annotations

import pytest

from tritonpy import Operation, OperationGroup, hookimpl
from tritonpy.testing import OperationGroupContract


class Telling(OperationGroup):
    """Says what it was told."""

    def operations(self):
        return {Operation("tell", "PUT", "told/{whom}", "Say what was said."): lambda call: {"said": call.body}}


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_operations():
        return {"telling": Telling}


class TestTelling(OperationGroupContract):
    plugin_class = Telling
    plugin = Plugin
    name = "telling"


class Empty(OperationGroup):
    def operations(self):
        return {}


class Buggy(OperationGroup):
    def operations(self):
        return {Operation("tell", "PUT", "told", "Say it."): lambda call: len(call.body)}


@pytest.mark.parametrize("broken", [Empty, Buggy])
def test_a_group_that_breaks_its_promise_is_found(broken, failures):
    contract = type("Contract", (OperationGroupContract,), {"plugin_class": broken})
    assert failures(contract) == {"test_it_answers_with_plain_json_or_says_what_is_wrong"}
