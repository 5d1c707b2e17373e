from __future__ import annotations

import pytest

from tritonpy import CallbackSink, InferRequest, ResourceExhausted
from tritonpy.auth import Principal
from tritonpy.metrics import ModelMetrics
from tritonpy_config.server import decode_options
from tritonpy_metrics import CustomMetrics
from tritonpy_queueing_fair.fair_sharing import FairSharing
from tritonpy_queueing_fair.options import FairOptions

SINK = CallbackSink(lambda *_: None)


class SharingHarness:
    def __init__(self, **options) -> None:
        self.metrics = CustomMetrics()
        self.now = 0
        self.sharing = FairSharing(
            decode_options(FairOptions, options, "sharing.fair"),
            ModelMetrics(self.metrics),
            lambda: self.now,
        )

    def admit(self, tenant: str) -> InferRequest:
        request = InferRequest("m", {}, SINK, principal=Principal(tenant) if tenant else None)
        self.sharing.admit(request)
        return request

    def refused(self) -> dict[str, float]:
        (family,) = self.metrics.snapshot()
        return {metric.labels["tenant"]: metric.value for metric in family.metrics if metric.value}


def test_tenants_have_separate_quotas():
    bench = SharingHarness(default={"concurrent": 1})
    bench.admit("a")
    bench.admit("b")
    with pytest.raises(ResourceExhausted, match="tenant 'a' exceeds its quota of 1 in flight"):
        bench.admit("a")


def test_clients_without_a_name_are_one_tenant():
    bench = SharingHarness(default={"concurrent": 1})
    bench.admit("")
    with pytest.raises(ResourceExhausted, match="a client without a name exceeds its quota"):
        bench.admit("")


def test_a_finished_request_releases_the_quota():
    bench = SharingHarness(default={"concurrent": 1})
    bench.sharing.ended(bench.admit("a"))
    bench.admit("a")


def test_a_rejection_has_a_retry_time():
    bench = SharingHarness(default={"requests_per_s": 0.1, "burst": 1})
    bench.sharing.ended(bench.admit("a"))
    with pytest.raises(ResourceExhausted) as caught:
        bench.admit("a")
    assert (caught.value.retry_after_s, caught.value.retry_after) == (10, "10")
    bench.now = 10 * 10**9
    bench.admit("a")


def test_rejections_are_counted_by_configured_tenant():
    bench = SharingHarness(default={"concurrent": 1}, tenants={"acme": {"concurrent": 1}})
    for tenant in ("acme", "acme", "acme", "x", "x", "y", "y"):
        try:
            bench.admit(tenant)
        except ResourceExhausted:
            continue
    assert bench.refused() == {"acme": 2, "<other>": 2}


def test_idle_quotas_are_removed():
    bench = SharingHarness(default={"requests_per_s": 10, "concurrent": 2})
    stays = bench.admit("stays")
    for number in range(5_000):
        bench.now += 10**9
        bench.sharing.ended(bench.admit(str(number)))
    assert len(bench.sharing._quotas) <= 300
    bench.sharing.ended(stays)


@pytest.mark.parametrize(("header", "read"), [("X-Tenant", {"x-tenant"}), ("", set())])
def test_it_declares_the_header_that_it_reads(header, read):
    assert SharingHarness(header=header).sharing.headers() == read


def test_a_tenant_is_named_by_its_header():
    bench = SharingHarness(header="X-Tenant", default={"concurrent": 1})
    request = InferRequest("m", {}, SINK, headers={"x-tenant": "acme"})
    bench.sharing.admit(request)
    with pytest.raises(ResourceExhausted, match="tenant 'acme'"):
        bench.admit("acme")
    bench.sharing.ended(request)
    bench.admit("acme")


def test_queues_use_tenants_and_their_weights():
    bench = SharingHarness(tenants={"b": {"weight": 3}})
    queue = bench.sharing.new_queue()
    queue.extend(
        InferRequest("m", {}, SINK, principal=Principal(name)) for name in "aaaabbbbbbbbbbbb"
    )
    assert [each.principal.name for each in queue][:8].count("b") == 6
