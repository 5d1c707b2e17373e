from __future__ import annotations

import logging

from tritonpy.auth import ApiCategory, Restriction, RestrictionDenials, Restrictions
from tritonpy.metrics import CustomMetrics, ModelMetrics

LOG = logging.getLogger("tritonpy.auth")
SECRET = Restriction((ApiCategory.METADATA, ApiCategory.LOGGING), "admin-key", "secret")


def counted(metrics):
    (family,) = metrics.snapshot()
    assert family.name == "tritonpy_restricted_requests"
    return {
        (one.labels["protocol"], one.labels["api"]): one.value
        for one in family.metrics
        if one.value
    }


def test_refusals_are_counted_by_protocol_and_api():
    metrics = CustomMetrics()
    http, grpc = (
        RestrictionDenials(ModelMetrics(metrics), protocol, LOG) for protocol in ("http", "grpc")
    )
    http.note(ApiCategory.LOGGING)
    http.note(ApiCategory.LOGGING)
    grpc.note(ApiCategory.METADATA)
    assert counted(metrics) == {("http", "logging"): 2, ("grpc", "metadata"): 1}


def test_the_log_names_the_api_and_is_rate_limited(caplog):
    refusals = RestrictionDenials(ModelMetrics(CustomMetrics()), "http", LOG, lambda: 0)
    for _ in range(50):
        refusals.note(ApiCategory.SHARED_MEMORY)
    assert (
        caplog.messages
        == ["refused: http call to the restricted API 'shared-memory' without its header"] * 10
    )


def test_only_calls_without_the_secret_are_counted():
    counted_calls = []
    restrictions = Restrictions([SECRET], note=counted_calls.append)
    for headers in ([], [("admin-key", "wrong")]):
        assert restrictions.missing(ApiCategory.LOGGING, headers) == "admin-key"
    restrictions.missing(ApiCategory.LOGGING, [("admin-key", "secret")])
    restrictions.missing(ApiCategory.INFERENCE, [])
    assert counted_calls == [ApiCategory.LOGGING] * 2
