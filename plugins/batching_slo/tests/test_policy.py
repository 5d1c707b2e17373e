from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy import CallbackSink, InferRequest, InvalidArgument
from tritonpy.scheduling import Pending, Run, Wait
from tritonpy_batching_slo.policy import SloPolicy
from tritonpy_protos.model_config_pb2 import ModelConfig

MS = 1_000_000
SINK = CallbackSink(lambda *_: None)


def policy_of(slo_ms: str | None = "20", largest: int = 64) -> SloPolicy:
    parameter = (
        ""
        if slo_ms is None
        else f'parameters {{ key: "slo_ms" value {{ string_value: "{slo_ms}" }} }}'
    )
    return SloPolicy(
        text_format.Parse(f'name: "m" max_batch_size: {largest} {parameter}', ModelConfig())
    )


def pending(count: int, queued_ns: int = 0, rows: int = 1, **more: object) -> Pending:
    requests = [
        InferRequest("m", {}, SINK, queued_ns=queued_ns, batch_size=rows) for _ in range(count)
    ]
    return Pending(requests, [rows] * count, rows * count, queued_ns, **more)


def trained(policy: SloPolicy, fixed_ms: float = 4, row_ms: float = 0.25) -> SloPolicy:
    for _ in range(40):
        for rows in (1, 4, 16, 32):
            policy.executed(rows, int((fixed_ms + row_ms * rows) * MS))
    return policy


@pytest.mark.parametrize("text", [None, "", "soon", "0", "-1", "nan", "inf"])
def test_an_invalid_target_fails_the_load(text: str | None) -> None:
    with pytest.raises(
        InvalidArgument, match="needs a parameter 'slo_ms', the latency target in milliseconds"
    ):
        policy_of(text)


def test_without_measurements_all_pending_requests_run() -> None:
    assert policy_of().plan(pending(7), 0) == Run(7)


def test_a_batch_takes_at_most_half_of_the_target() -> None:
    decision = trained(policy_of()).plan(pending(24, closed=True), 0)
    assert isinstance(decision, Run)
    assert 12 <= decision.count < 24  # twice its cost fits into the target


def test_a_burst_runs_as_many_requests_as_can_be_in_time() -> None:
    decision = trained(policy_of()).plan(pending(64, closed=True), 0)
    assert isinstance(decision, Run)
    assert 50 <= decision.count < 60


def test_more_instances_allow_for_larger_batches() -> None:
    one, four = trained(policy_of("30")), trained(policy_of("30"))
    four.instances_changed(4)
    for policy in (one, four):  # with more instances one becomes free sooner
        waited = 0 if policy is four else 12 * MS
        for step in range(300):
            policy.cut(
                pending(16, step * 20 * MS, since_ns=step * 20 * MS + waited),
                16,
                step * 20 * MS + waited,
            )
            policy.executed(16, 8 * MS)
    assert (
        four.plan(pending(64, closed=True), 0).count > one.plan(pending(64, closed=True), 0).count
    )


def test_late_requests_run_at_full_throughput_and_are_not_dropped() -> None:
    policy = trained(policy_of("6"))
    late = policy.plan(pending(64, closed=True), 100 * MS)
    assert isinstance(late, Run)
    assert late.count > 32


def test_requests_of_many_rows_are_counted_by_their_rows() -> None:
    policy = trained(policy_of())
    one = policy.plan(pending(64, closed=True), 0).count
    assert policy.plan(pending(16, rows=4, closed=True), 0).count == one // 4


def test_a_request_that_cannot_be_in_time_runs_alone() -> None:
    assert trained(policy_of("9")).plan(pending(2, rows=32, closed=True), 0) == Run(1)


def learn_bursts(policy: SloPolicy, count: int) -> None:
    """Simulate `count` bursts of 16 rows within 160 us, one every 20 ms."""
    for step in range(count):
        at = step * 20 * MS
        requests = [
            InferRequest("m", {}, SINK, queued_ns=at + index * 10_000) for index in range(16)
        ]
        policy.cut(Pending(requests, [1] * 16, 16, at, since_ns=at), 16, at + 200_000)
        policy.executed(16, 8 * MS)


def test_it_waits_for_a_learned_burst_but_never_beyond_the_target() -> None:
    policy = trained(policy_of())
    learn_bursts(policy, 20)
    now = 2_000 * MS
    decision = policy.plan(pending(2, now, since_ns=now), now)
    assert isinstance(decision, Wait)
    assert now < decision.until_ns <= now + 4 * MS
    assert policy.plan(pending(2, now - 15 * MS, since_ns=now), now) == Run(2)


def test_it_stops_waiting_if_that_does_not_raise_the_rate() -> None:
    policy = trained(policy_of())
    learn_bursts(policy, 60)
    now = 2_000 * MS
    assert policy.plan(pending(2, now, since_ns=now), now) == Run(2)


def test_it_does_not_wait_if_nothing_can_join() -> None:
    assert trained(policy_of()).plan(pending(2, closed=True), 0) == Run(2)
