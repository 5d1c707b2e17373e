"""Cancellation: a cancelled request frees its resources immediately.

That covers the queue, a full queue, the instance, and models that were called for the request. The
tests check the order of events, or counters read while a model still runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import grpc
import pytest

from tests.cancellation import CancellationServer, add_model, cancellation_server
from tests.conftest import Models, Serve

WAYS = ("http", "pipelining", "grpc", "deadline", "stream", "stream_deadline")
ONE_WAITS = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
IN_TIME = """dynamic_batching { default_queue_policy {
    default_timeout_microseconds: 100000000 allow_timeout_override: true timeout_action: REJECT } }"""
MODES = ("process", "thread")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CancellationServer]:
    models, folder = (
        Models(tmp_path_factory.mktemp("cancelling") / "models"),
        tmp_path_factory.mktemp("progress"),
    )
    for mode in MODES:
        add_model(models, f"one_{mode}", folder, mode)
        add_model(models, f"small_{mode}", folder, mode, more=ONE_WAITS)
        add_model(models, f"timely_{mode}", folder, mode, more=IN_TIME)
        add_model(models, f"calling_{mode}", folder, mode, calls=f"called_{mode}")
        add_model(models, f"called_{mode}", folder, mode)
    flags = ("--exit-timeout-secs=2", "--metrics-interval-ms=50")
    with (
        serve(f"--model-repository={models.path}", *flags) as served,
        cancellation_server(served, folder) as made,
    ):
        yield made


@pytest.fixture
def names() -> list[str]:
    number = next(_numbers)
    return [f"{letter}{number}" for letter in "abcd"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def more_failures(before: dict[str, int], **more: int) -> dict[str, int]:
    return {**before, **{reason: before.get(reason, 0) + count for reason, count in more.items()}}


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_execution_frees_its_instance(
    running: CancellationServer, names: list[str], mode: str, way: str
) -> None:
    model, (first, second, *_) = f"one_{mode}", names
    disconnect = running.start_request(way, model, first)
    running.wait_for_event(f"begin {first}")
    response = running.infer(model, second)
    running.wait_until_queued(model, 1)
    disconnect()
    running.wait_for_event(f"begin {second}")
    running.finish(second)
    assert response.result().id == second
    happened = [f"begin {first}", f"cancelled {first}", f"begin {second}", f"done {second}"]
    assert running.events(first, second, f"{first}, pipelined") == happened


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_request_leaves_the_queue_while_the_instance_is_busy(
    running: CancellationServer, names: list[str], mode: str, way: str
) -> None:
    model, (busy, waiting, last, _) = f"one_{mode}", names
    failed = running.failures(model)
    first = running.infer(model, busy)
    running.wait_for_event(f"begin {busy}")
    disconnect = running.start_request(way, model, waiting)
    running.wait_until_queued(model, 1)
    disconnect()
    running.wait_until_failed(model, **more_failures(failed, CANCELED=1))
    running.wait_until_queued(model, 0)
    assert running.events(busy) == [f"begin {busy}"]
    second = running.infer(model, last)
    running.finish(busy)
    running.finish(last)
    assert (first.result().id, second.result().id) == (busy, last)
    assert running.events(waiting) == []


@pytest.mark.parametrize("way", ["http", "grpc", "stream"])
def test_a_cancelled_request_frees_its_place_in_a_full_queue(
    running: CancellationServer, names: list[str], mode: str, way: str
) -> None:
    model, (busy, waiting, refused, taken) = f"small_{mode}", names
    failed = running.failures(model)
    first = running.infer(model, busy)
    running.wait_for_event(f"begin {busy}")
    disconnect = running.start_request(way, model, waiting)
    running.wait_until_queued(model, 1)
    response = running.infer(model, refused)
    assert response.code() is grpc.StatusCode.UNAVAILABLE
    assert response.details() == f"[request id: {refused}] Exceeds maximum queue size"
    disconnect()
    running.wait_until_failed(model, **more_failures(failed, CANCELED=1))
    second = running.infer(model, taken)
    running.wait_until_queued(model, 1)
    assert running.events(busy) == [f"begin {busy}"]
    running.finish(busy)
    running.finish(taken)
    assert (first.result().id, second.result().id) == (busy, taken)
    assert running.events(waiting, refused) == []


def test_a_request_past_its_timeout_is_rejected_while_the_instance_is_busy(
    running: CancellationServer, names: list[str], mode: str
) -> None:
    model, (busy, late, *_) = f"timely_{mode}", names
    failed = running.failures(model)
    first = running.infer(model, busy)
    running.wait_for_event(f"begin {busy}")
    response = running.infer(model, late, timeout=50_000)
    assert response.code() is grpc.StatusCode.UNAVAILABLE
    assert response.details() == "Request timeout expired"
    running.wait_until_failed(model, **more_failures(failed, REJECTED=1))
    assert running.events(busy) == [f"begin {busy}"]
    running.finish(busy)
    assert first.result().id == busy
    assert running.events(late) == []


@pytest.mark.parametrize("way", ["http", "grpc", "deadline", "stream"])
def test_cancellation_reaches_running_bls_calls(
    running: CancellationServer, names: list[str], mode: str, way: str
) -> None:
    called, (parent, other, *_) = f"called_{mode}", names
    disconnect = running.start_request(way, f"calling_{mode}", parent)
    child = f"child of {parent}"
    running.wait_for_event(f"begin {child}")
    response = running.infer(called, other)
    running.wait_until_queued(called, 1)
    disconnect()
    running.wait_for_event(f"begin {other}")
    running.finish(other)
    assert response.result().id == other
    assert running.events(child, other)[:3] == [
        f"begin {child}",
        f"cancelled {child}",
        f"begin {other}",
    ]
    running.wait_for_event(f"failed 'stopped' {parent}")


def test_cancellation_reaches_queued_bls_calls(
    running: CancellationServer, names: list[str], mode: str
) -> None:
    called, (busy, parent, *_) = f"called_{mode}", names
    failed = running.failures(called)
    first = running.infer(called, busy)
    running.wait_for_event(f"begin {busy}")
    disconnect = running.start_request("grpc", f"calling_{mode}", parent)
    running.wait_until_queued(called, 1)
    disconnect()
    running.wait_until_failed(called, **more_failures(failed, CANCELED=1))
    running.wait_for_event(f"failed 'Request cancelled' {parent}")
    assert running.events(busy) == [f"begin {busy}"]
    running.finish(busy)
    assert first.result().id == busy
    assert running.events(f"child of {parent}") == []
