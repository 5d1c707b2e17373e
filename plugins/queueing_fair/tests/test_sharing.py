from __future__ import annotations

import pytest

from tritonpy import CallbackSink, InferRequest, ModelMetrics, Principal, ResourceExhausted
from tritonpy.config.server import decode_options
from tritonpy.custom_metrics import CustomMetrics
from tritonpy_queueing_fair.options import FairOptions
from tritonpy_queueing_fair.sharing import FairSharing

SINK = CallbackSink(lambda *_: None)


class Bench:
    def __init__(self, **options) -> None:
        self.metrics = CustomMetrics()
        self.now = 0
        self.sharing = FairSharing(
            decode_options(FairOptions, options, "sharing.fair"), ModelMetrics(self.metrics), lambda: self.now
        )

    def admit(self, tenant: str) -> InferRequest:
        request = InferRequest("m", {}, SINK, principal=Principal(tenant) if tenant else None)
        self.sharing.admit(request)
        return request

    def refused(self) -> dict[str, float]:
        (family,) = self.metrics.snapshot()
        return {metric.labels["tenant"]: metric.value for metric in family.metrics if metric.value}


def test_tenants_have_quotas_of_their_own():
    bench = Bench(default={"concurrent": 1})
    bench.admit("a")
    bench.admit("b")
    with pytest.raises(
        ResourceExhausted, match="tenant 'a' has used up its quota of requests, 1 open at the same time"
    ):
        bench.admit("a")


def test_who_has_no_name_is_one_tenant():
    bench = Bench(default={"concurrent": 1})
    bench.admit("")
    with pytest.raises(ResourceExhausted, match="a caller without a name has used up its quota"):
        bench.admit("")


def test_what_ended_makes_room():
    bench = Bench(default={"concurrent": 1})
    bench.sharing.ended(bench.admit("a"))
    bench.admit("a")


def test_the_refusal_says_when_to_come_again():
    bench = Bench(default={"requests_per_s": 0.1, "burst": 1})
    bench.sharing.ended(bench.admit("a"))
    with pytest.raises(ResourceExhausted) as caught:
        bench.admit("a")
    assert (caught.value.retry_after_s, caught.value.retry_after) == (10, "10")
    bench.now = 10 * 10**9
    bench.admit("a")


def test_refusals_are_counted_by_the_tenants_that_are_named():
    bench = Bench(default={"concurrent": 1}, tenants={"acme": {"concurrent": 1}})
    for tenant in ("acme", "acme", "acme", "x", "x", "y", "y"):
        try:
            bench.admit(tenant)
        except ResourceExhausted:
            continue
    assert bench.refused() == {"acme": 2, "<other>": 2}


def test_tenants_that_come_once_are_forgotten():
    bench = Bench(default={"requests_per_s": 10, "concurrent": 2})
    stays = bench.admit("stays")
    for number in range(5_000):
        bench.now += 10**9
        bench.sharing.ended(bench.admit(str(number)))
    assert len(bench.sharing._quotas) <= 300
    bench.sharing.ended(stays)


@pytest.mark.parametrize(("header", "read"), [("X-Tenant", {"x-tenant"}), ("", set())])
def test_it_says_which_header_it_reads(header, read):
    assert Bench(header=header).sharing.headers() == read


def test_a_tenant_is_named_by_its_header():
    bench = Bench(header="X-Tenant", default={"concurrent": 1})
    request = InferRequest("m", {}, SINK, headers={"x-tenant": "acme"})
    bench.sharing.admit(request)
    with pytest.raises(ResourceExhausted, match="tenant 'acme'"):
        bench.admit("acme")
    bench.sharing.ended(request)
    bench.admit("acme")


def test_lines_know_tenants_and_their_weights():
    bench = Bench(tenants={"b": {"weight": 3}})
    line = bench.sharing.line()
    line.extend(InferRequest("m", {}, SINK, principal=Principal(name)) for name in "aaaabbbbbbbbbbbb")
    assert [each.principal.name for each in line][:8].count("b") == 6
