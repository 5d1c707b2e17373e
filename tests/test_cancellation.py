"""A request whose client has gone makes room at once: in the queue, in a full queue, at the instance, and at the models that were called for it.

Everything is judged by the order of events, or by what is counted while a model still runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import grpc
import pytest

from tests.cancelling import Stage, add_model, stage
from tests.conftest import Models, Serve

WAYS = ("http", "pipelining", "grpc", "deadline", "stream", "stream_deadline")
ONE_WAITS = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
IN_TIME = """dynamic_batching { default_queue_policy {
    default_timeout_microseconds: 100000000 allow_timeout_override: true timeout_action: REJECT } }"""
MODES = ("process", "thread")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    models, folder = Models(tmp_path_factory.mktemp("cancelling") / "models"), tmp_path_factory.mktemp("told")
    for mode in MODES:
        add_model(models, f"one_{mode}", folder, mode)
        add_model(models, f"small_{mode}", folder, mode, more=ONE_WAITS)
        add_model(models, f"timely_{mode}", folder, mode, more=IN_TIME)
        add_model(models, f"calling_{mode}", folder, mode, calls=f"called_{mode}")
        add_model(models, f"called_{mode}", folder, mode)
    flags = ("--exit-timeout-secs=2", "--metrics-interval-ms=50")
    with serve(f"--model-repository={models.path}", *flags) as served, stage(served, folder) as made:
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
def test_a_running_one_frees_its_instance_when_the_model_notices(
    running: Stage, names: list[str], mode: str, way: str
) -> None:
    model, (first, second, *_) = f"one_{mode}", names
    leave = running.ask(way, model, first)
    running.until(f"begin {first}")
    answer = running.answer(model, second)
    running.until_waiting(model, 1)
    leave()
    running.until(f"begin {second}")
    running.go(second)
    assert answer.result().id == second
    happened = [f"begin {first}", f"cancelled {first}", f"begin {second}", f"done {second}"]
    assert running.events(first, second, f"{first}, pipelined") == happened


@pytest.mark.parametrize("way", WAYS)
def test_a_waiting_one_is_dropped_while_the_instance_is_busy(
    running: Stage, names: list[str], mode: str, way: str
) -> None:
    model, (busy, waiting, last, _) = f"one_{mode}", names
    failed = running.failures(model)
    first = running.answer(model, busy)
    running.until(f"begin {busy}")
    leave = running.ask(way, model, waiting)
    running.until_waiting(model, 1)
    leave()
    running.until_failed(model, **more_failures(failed, CANCELED=1))
    running.until_waiting(model, 0)
    assert running.events(busy) == [f"begin {busy}"]
    second = running.answer(model, last)
    running.go(busy)
    running.go(last)
    assert (first.result().id, second.result().id) == (busy, last)
    assert running.events(waiting) == []


@pytest.mark.parametrize("way", ["http", "grpc", "stream"])
def test_its_place_in_a_full_queue_goes_to_the_next(running: Stage, names: list[str], mode: str, way: str) -> None:
    model, (busy, waiting, refused, taken) = f"small_{mode}", names
    failed = running.failures(model)
    first = running.answer(model, busy)
    running.until(f"begin {busy}")
    leave = running.ask(way, model, waiting)
    running.until_waiting(model, 1)
    answer = running.answer(model, refused)
    assert answer.code() is grpc.StatusCode.UNAVAILABLE
    assert answer.details() == f"[request id: {refused}] Exceeds maximum queue size"
    leave()
    running.until_failed(model, **more_failures(failed, CANCELED=1))
    second = running.answer(model, taken)
    running.until_waiting(model, 1)
    assert running.events(busy) == [f"begin {busy}"]
    running.go(busy)
    running.go(taken)
    assert (first.result().id, second.result().id) == (busy, taken)
    assert running.events(waiting, refused) == []


def test_one_that_waited_longer_than_it_may_is_rejected_while_the_instance_is_busy(
    running: Stage, names: list[str], mode: str
) -> None:
    model, (busy, late, *_) = f"timely_{mode}", names
    failed = running.failures(model)
    first = running.answer(model, busy)
    running.until(f"begin {busy}")
    answer = running.answer(model, late, timeout=50_000)
    assert answer.code() is grpc.StatusCode.UNAVAILABLE
    assert answer.details() == "Request timeout expired"
    running.until_failed(model, **more_failures(failed, REJECTED=1))
    assert running.events(busy) == [f"begin {busy}"]
    running.go(busy)
    assert first.result().id == busy
    assert running.events(late) == []


@pytest.mark.parametrize("way", ["http", "grpc", "deadline", "stream"])
def test_what_a_model_called_for_it_ends_with_it(running: Stage, names: list[str], mode: str, way: str) -> None:
    called, (parent, other, *_) = f"called_{mode}", names
    leave = running.ask(way, f"calling_{mode}", parent)
    child = f"child of {parent}"
    running.until(f"begin {child}")
    answer = running.answer(called, other)
    running.until_waiting(called, 1)
    leave()
    running.until(f"begin {other}")
    running.go(other)
    assert answer.result().id == other
    assert running.events(child, other)[:3] == [f"begin {child}", f"cancelled {child}", f"begin {other}"]
    running.until(f"heard 'stopped' {parent}")


def test_a_called_one_that_waits_is_dropped_with_it(running: Stage, names: list[str], mode: str) -> None:
    called, (busy, parent, *_) = f"called_{mode}", names
    failed = running.failures(called)
    first = running.answer(called, busy)
    running.until(f"begin {busy}")
    leave = running.ask("grpc", f"calling_{mode}", parent)
    running.until_waiting(called, 1)
    leave()
    running.until_failed(called, **more_failures(failed, CANCELED=1))
    running.until(f"heard 'Request cancelled' {parent}")
    assert running.events(busy) == [f"begin {busy}"]
    running.go(busy)
    assert first.result().id == busy
    assert running.events(f"child of {parent}") == []
