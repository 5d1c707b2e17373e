from __future__ import annotations

import msgspec
import pytest

from tritonpy_queueing_fair.options import FairOptions, Tenant


def test_an_unconfigured_tenant_has_the_default_share():
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
def test_the_burst_defaults_to_the_requests_of_one_second(tenant, most):
    assert tenant.burst_size == most


@pytest.mark.parametrize(
    "raw", [{"weight": 0}, {"weight": -1}, {"requests_per_s": -1}, {"concurrent": -1}, {"wait": 1}]
)
def test_an_invalid_share_is_rejected(raw):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"tenants": {"acme": raw}}, FairOptions)
