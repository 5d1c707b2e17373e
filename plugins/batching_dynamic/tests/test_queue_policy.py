from __future__ import annotations

import pytest

from tritonpy_batching_dynamic.queue_policy import QueuePolicy


def test_a_configured_policy_is_read_in_nanoseconds(config):
    message = config(
        "dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 "
        "allow_timeout_override: true max_queue_size: 7 } }"
    ).dynamic_batching.default_queue_policy
    assert QueuePolicy.of(message) == QueuePolicy(
        max_size=7, timeout_ns=5_000, overridable=True, delays=True
    )


def test_an_absent_policy_has_no_limits(config):
    assert (
        QueuePolicy.of(config("dynamic_batching {}").dynamic_batching.default_queue_policy)
        == QueuePolicy()
    )


@pytest.mark.parametrize(
    ("overridable", "requested_us", "expected"),
    [(False, 1, 110), (True, 0, 110), (True, 1, 101), (True, 50, 110)],
    ids=["not allowed", "not requested", "shorter", "longer"],
)
def test_a_request_can_only_shorten_its_timeout(overridable, requested_us, expected):
    policy = QueuePolicy(timeout_ns=10_000, overridable=overridable)
    assert policy.deadline(100_000, requested_us) == expected * 1_000
