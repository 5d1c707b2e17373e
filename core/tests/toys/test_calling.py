from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.tests.toys.calling import Caller, Detached, Patient
from core.tests.toys.ensemble import EnsembleScheduler
from core.tests.toys.isolated import ISOLATED, isolating
from core.tests.toys.serving import ToyPlugin, ask, config_of, numbers
from tritonpy.api.engine import Engine
from tritonpy.errors import Cancelled, InvalidArgument, Unavailable
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import PATIENCE_S, Witness

ENSEMBLE = """
    platform: "ensemble" ensemble_scheduling { step {
        model_name: "a" model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
    } }
    input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
# Where the models run: all in threads of the server, all in processes, and one that is called from the other side.
PLACES = pytest.mark.parametrize("isolated", ["", "a b two", "a"], ids=["threads", "processes", "both"])


@contextmanager
def calling(repository: ModelRepository, isolated: str = "") -> Iterator[Engine]:
    for name in ("a", "b", "two"):
        where = ISOLATED if name in isolated.split() else ""
        repository.add(name, config_of("caller", instances=2 if name == "two" else 1, more=where))
    repository.add("detached", config_of("detached"))
    repository.add("patient", config_of("patient"))
    repository.add("e", ENSEMBLE)
    plugin = ToyPlugin({"caller": Caller, "detached": Detached, "patient": Patient}, {"ensemble": EnsembleScheduler})
    with isolating(repository, plugin) as server:
        yield server.engine


@PLACES
def test_calls_that_can_be_answered_are(model_repository: ModelRepository, isolated: str) -> None:
    with calling(model_repository, isolated) as engine:
        for model, calls, result in (("a", "b", 2), ("b", "e", 2), ("two", "two a b", 4), ("detached", "detached", 2)):
            for _ in range(3):
                witness = Witness()
                request = ask(engine, witness, model, [0], parameters={"calls": calls})
                assert numbers(*witness.wait(request)) == [[result]], (model, calls)
                witness.check(request)


@PLACES
def test_calls_that_come_back_are_refused_and_everything_goes_on(
    model_repository: ModelRepository, isolated: str
) -> None:
    with calling(model_repository, isolated) as engine:
        for model, calls in (("a", "a"), ("a", "b a"), ("a", "e"), ("a", "b e"), ("a", "two a"), ("two", "two two")):
            for _ in range(3):
                witness = Witness()
                request = ask(engine, witness, model, [0], parameters={"calls": calls})
                with pytest.raises(Unavailable, match="the call would wait for ever: instance '"):
                    numbers(*witness.wait(request))
            assert numbers(*witness.wait(ask(engine, witness, model, [0]))) == [[1]]


@PLACES
def test_of_two_requests_that_would_wait_for_each_other_one_is_refused(
    model_repository: ModelRepository, tmp_path: Path, isolated: str
) -> None:
    with calling(model_repository, isolated) as engine:
        for number in range(10):
            witness, folder = Witness(), tmp_path / str(number)
            folder.mkdir()
            requests = [
                ask(engine, witness, model, [0], parameters={"calls": other, "meet": str(folder)})
                for model, other in ("ab", "ba")
            ]
            answers = [answer for (answer,) in witness.wait(*requests)]
            (refused,) = [answer.error for answer in answers if answer.error is not None]
            assert isinstance(refused, Unavailable)
            (answered,) = [answer for answer in answers if answer.error is None]
            assert numbers([answered]) == [[2]]


@PLACES
def test_a_call_that_its_model_refuses_holds_nobody_up(model_repository: ModelRepository, isolated: str) -> None:
    with calling(model_repository, isolated) as engine:
        witness = Witness()
        for _ in range(3):
            request = ask(engine, witness, "a", [0], parameters={"calls": "nobody"})
            with pytest.raises(InvalidArgument, match="'nobody' is not found"):
                numbers(*witness.wait(request))
        assert numbers(*witness.wait(ask(engine, witness, "b", [0], parameters={"calls": "a"}))) == [[2]]


@PLACES
@pytest.mark.parametrize(("model", "calls"), [("a", "patient"), ("a", "b patient"), ("detached", "patient")])
def test_a_request_that_is_cancelled_takes_its_calls_with_it(
    model_repository: ModelRepository, isolated: str, model: str, calls: str
) -> None:
    Patient.began.clear()
    with calling(model_repository, isolated) as engine:
        witness = Witness()
        request = ask(engine, witness, model, [0], parameters={"calls": calls})
        assert Patient.began.wait(PATIENCE_S)
        request.cancel()
        ((answer,),) = witness.wait(request)
        assert isinstance(answer.error, Cancelled)
