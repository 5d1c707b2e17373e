from __future__ import annotations

import pytest

from tritonpy import Operation, Router, hookimpl
from tritonpy.testing import RouterContract


class Passing(Router):
    """Decides nothing."""


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_routers():
        return {"passing": Passing}


class TestPassing(RouterContract):
    plugin_class = Passing
    plugin = Plugin
    name = "passing"


class Capitals(Passing):
    def headers(self):
        return frozenset({"X-User"})


class Renames(Passing):
    def infer(self, request):
        request.model_name = "text"
        super().infer(request)


class HidesOperations(Passing):
    def operations(self):
        return ()


class OffersNoJson(Passing):
    def offered(self):
        return {Operation("bad", "GET", "bad", "Tell."): lambda _call: {1, 2}}


class OffersBugs(Passing):
    def offered(self):
        return {Operation("bad", "GET", "bad/{thing}", "Tell."): lambda call: call.body["x"]}


class SaysNothing(Passing):
    def offered(self):
        return {Operation("bad", "GET", "bad", "no sentence"): lambda _call: {}}


OFFERED = "test_what_it_offers_answers_with_plain_json_or_says_what_is_wrong"
BROKEN = {
    Capitals: "test_the_headers_that_it_reads_are_named_as_requests_name_them",
    Renames: "test_an_inference_gives_outputs_and_id_back",
    HidesOperations: "test_questions_are_answered_alike",
    OffersNoJson: OFFERED,
    OffersBugs: OFFERED,
    SaysNothing: OFFERED,
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_router_that_breaks_its_promise_is_found(broken, failures):
    contract = type("Contract", (RouterContract,), {"plugin_class": broken})
    assert BROKEN[broken] in failures(contract)
