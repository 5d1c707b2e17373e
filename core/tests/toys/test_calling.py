from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.tests.toys.calling import Caller, Detached, WaitsForCancellation
from core.tests.toys.ensemble import EnsembleScheduler
from core.tests.toys.isolated import ISOLATED, isolating
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers
from tritonpy.api.engine import Engine
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import WAIT_S, RecordingSink
from tritonpy_types.errors import Cancelled, InvalidArgument, Unavailable

ENSEMBLE = """
    platform: "ensemble" ensemble_scheduling { step {
        model_name: "a" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
    } }
    input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
# Where the models run: all in threads, all in processes, and one called from the other side.
PLACES = pytest.mark.parametrize(
    "isolated", ["", "a b two", "a"], ids=["threads", "processes", "both"]
)


@contextmanager
def calling(repository: ModelRepository, isolated: str = "") -> Iterator[Engine]:
    for name in ("a", "b", "two"):
        where = ISOLATED if name in isolated.split() else ""
        repository.add(name, config_of("caller", instances=2 if name == "two" else 1, more=where))
    repository.add("detached", config_of("detached"))
    repository.add("patient", config_of("patient"))
    repository.add("e", ENSEMBLE)
    plugin = ToyPlugin(
        {"caller": Caller, "detached": Detached, "patient": WaitsForCancellation},
        {"ensemble": EnsembleScheduler},
    )
    with isolating(repository, plugin) as server:
        yield server.engine


@PLACES
def test_calls_get_their_responses(model_repository: ModelRepository, isolated: str) -> None:
    with calling(model_repository, isolated) as engine:
        for model, calls, result in (
            ("a", "b", 2),
            ("b", "e", 2),
            ("two", "two a b", 4),
            ("detached", "detached", 2),
        ):
            for _ in range(3):
                recorder = RecordingSink()
                request = ask(engine, recorder, model, [0], parameters={"calls": calls})
                assert numbers(*recorder.wait(request)) == [[result]], (model, calls)
                recorder.check(request)


@PLACES
def test_recursive_calls_are_refused_and_other_requests_continue(
    model_repository: ModelRepository, isolated: str
) -> None:
    with calling(model_repository, isolated) as engine:
        for model, calls in (
            ("a", "a"),
            ("a", "b a"),
            ("a", "e"),
            ("a", "b e"),
            ("a", "two a"),
            ("two", "two two"),
        ):
            for _ in range(3):
                recorder = RecordingSink()
                request = ask(engine, recorder, model, [0], parameters={"calls": calls})
                with pytest.raises(Unavailable, match="the call would deadlock: instance '"):
                    numbers(*recorder.wait(request))
            assert numbers(*recorder.wait(ask(engine, recorder, model, [0]))) == [[1]]


@PLACES
def test_one_of_two_mutually_waiting_requests_is_refused(
    model_repository: ModelRepository, tmp_path: Path, isolated: str
) -> None:
    with calling(model_repository, isolated) as engine:
        for number in range(10):
            recorder, folder = RecordingSink(), tmp_path / str(number)
            folder.mkdir()
            requests = [
                ask(engine, recorder, model, [0], parameters={"calls": other, "meet": str(folder)})
                for model, other in ("ab", "ba")
            ]
            responses = [response for (response,) in recorder.wait(*requests)]
            (refused,) = [response.error for response in responses if response.error is not None]
            assert isinstance(refused, Unavailable)
            (succeeded,) = [response for response in responses if response.error is None]
            assert numbers([succeeded]) == [[2]]


@PLACES
def test_a_refused_call_blocks_no_other_request(
    model_repository: ModelRepository, isolated: str
) -> None:
    with calling(model_repository, isolated) as engine:
        recorder = RecordingSink()
        for _ in range(3):
            request = ask(engine, recorder, "a", [0], parameters={"calls": "unknown"})
            with pytest.raises(InvalidArgument, match="'unknown' is not found"):
                numbers(*recorder.wait(request))
        assert numbers(
            *recorder.wait(ask(engine, recorder, "b", [0], parameters={"calls": "a"}))
        ) == [[2]]


@PLACES
@pytest.mark.parametrize(
    ("model", "calls"), [("a", "patient"), ("a", "b patient"), ("detached", "patient")]
)
def test_a_cancellation_cancels_the_calls_of_a_request(
    model_repository: ModelRepository, isolated: str, model: str, calls: str
) -> None:
    WaitsForCancellation.began.clear()
    with calling(model_repository, isolated) as engine:
        recorder = RecordingSink()
        request = ask(engine, recorder, model, [0], parameters={"calls": calls})
        assert WaitsForCancellation.began.wait(WAIT_S)
        request.cancel()
        ((response,),) = recorder.wait(request)
        assert isinstance(response.error, Cancelled)
