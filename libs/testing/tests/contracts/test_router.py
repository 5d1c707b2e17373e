from __future__ import annotations

import pytest

from tritonpy import hookimpl
from tritonpy.frontend import Operation, Router
from tritonpy_testing import RouterContract


class ForwardingRouter(Router):
    """A router that forwards everything."""


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_routers():
        return {"passing": ForwardingRouter}


class TestForwardingRouter(RouterContract):
    plugin_class = ForwardingRouter
    plugin = Plugin
    name = "passing"


class Capitals(ForwardingRouter):
    def headers(self):
        return frozenset({"X-User"})


class Renames(ForwardingRouter):
    def infer(self, request):
        request.model_name = "text"
        super().infer(request)


class HidesOperations(ForwardingRouter):
    def operations(self):
        return ()


class OffersNoJson(ForwardingRouter):
    def router_operations(self):
        return {Operation("bad", "GET", "bad", "Tell."): lambda _call: {1, 2}}


class OffersBugs(ForwardingRouter):
    def router_operations(self):
        return {Operation("bad", "GET", "bad/{thing}", "Tell."): lambda call: call.body["x"]}


class SaysNothing(ForwardingRouter):
    def router_operations(self):
        return {Operation("bad", "GET", "bad", "no sentence"): lambda _call: {}}


OFFERED = "test_offered_operations_return_json_or_raise_triton_errors"
BROKEN = {
    Capitals: "test_header_names_are_in_lower_case",
    Renames: "test_an_inference_returns_outputs_and_id",
    HidesOperations: "test_queries_return_the_same_results",
    OffersNoJson: OFFERED,
    OffersBugs: OFFERED,
    SaysNothing: OFFERED,
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_router_fails(broken, failures):
    contract = type("Contract", (RouterContract,), {"plugin_class": broken})
    assert BROKEN[broken] in failures(contract)
