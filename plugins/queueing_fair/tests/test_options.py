from __future__ import annotations

import msgspec
import pytest

from tritonpy_queueing_fair.options import FairOptions, Tenant


def test_who_is_not_named_is_as_the_default():
    options = FairOptions(default=Tenant(weight=3), tenants={"acme": Tenant(weight=4)})
    assert (options.tenant("acme").weight, options.tenant("x").weight) == (4, 3)


@pytest.mark.parametrize(
    ("tenant", "most"),
    [
        (Tenant(), 1),
        (Tenant(requests_per_s=5), 5),
        (Tenant(requests_per_s=0.5), 1),
        (Tenant(requests_per_s=5, burst=9), 9),
    ],
)
def test_at_once_a_tenant_may_send_its_burst_or_one_seconds_requests(tenant, most):
    assert tenant.most_at_once == most


@pytest.mark.parametrize(
    "raw", [{"weight": 0}, {"weight": -1}, {"requests_per_s": -1}, {"concurrent": -1}, {"wait": 1}]
)
def test_a_share_without_sense_is_refused(raw):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"tenants": {"acme": raw}}, FairOptions)
