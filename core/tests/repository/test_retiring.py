from __future__ import annotations

import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tritonpy.repository import retiring
from tritonpy.repository.retiring import Departure, Retiring
from tritonpy.repository.table import ModelTable


class Model:
    """Closes when the test lets it; `open` requests wait."""

    def __init__(self, version=1, waiting=0, executing=0, error=None):
        self.name, self.version, self.open = "m", version, waiting + executing
        self.executing = executing
        self.drained, self.members = threading.Event(), {}
        self.error = error
        self.release()

    def release(self):
        if not self.open:
            self.drained.set()

    def close(self):
        assert self.drained.wait(10)
        if self.error is not None:
            raise self.error

    def give_up(self):
        self.open = self.executing
        self.release()


class Agents:
    def __init__(self):
        self.told = []

    def tell(self, action):
        self.told.append(action.value)


@pytest.fixture
def prepared():
    agents, released = Agents(), []
    return SimpleNamespace(
        agents=agents, release=lambda: released.append(True), released=released, account=None, leave=lambda: None
    )


@pytest.fixture
def retire(prepared):
    table, unloaded = ModelTable(), []
    under_test = Retiring(table, unloaded.append)

    def start(*models):
        table.swap("m", {model.version: model for model in models})
        under_test.retire(Departure("m", table.swap("m", {}), prepared))
        return under_test

    start.table, start.unloaded = table, unloaded
    yield start
    assert not [thread for thread in threading.enumerate() if thread.name == "unload m"]


def test_versions_close_and_then_what_they_were_loaded_from_is_freed(retire, prepared):
    models = [Model(1), Model(2)]
    assert retire(*models).wait(10)
    assert [(line.version, line.state, line.reason) for line in retire.table.index("m")] == [
        ("1", "UNAVAILABLE", "unloaded"),
        ("2", "UNAVAILABLE", "unloaded"),
    ]
    assert retire.unloaded == models
    assert prepared.agents.told == ["UNLOAD", "UNLOAD_COMPLETE"]
    assert prepared.released == [True]


def test_retiring_returns_at_once_and_what_is_in_flight_finishes(retire, prepared):
    model = Model(executing=1)
    under_test = retire(model)
    assert [line.state for line in retire.table.index("m")] == ["UNLOADING"]
    assert prepared.released == []
    model.drained.set()
    assert under_test.wait(10)


def test_after_the_time_out_what_waits_is_given_up(retire, prepared):
    assert not retire(Model(1, waiting=2)).wait(0)
    assert prepared.released == [True]


def test_what_executes_is_not_waited_for_longer_than_a_moment(retire, monkeypatch):
    monkeypatch.setattr(retiring, "GRACE_S", 0.01)
    model = Model(executing=1)
    under_test = retire(model)
    assert not under_test.wait(0)
    model.drained.set()
    assert under_test.wait(10)


@pytest.mark.parametrize("broken", ["close", "release"])
def test_what_fails_to_close_is_logged_and_the_rest_is_freed(retire, prepared, caplog, broken):
    if broken == "close":
        model = Model(error=OSError("stuck"))
    else:
        model = Model()
        prepared.release = lambda: 1 / 0
    assert retire(model, Model(2)).wait(10)
    assert (
        "version 1 of 'm' failed to close" if broken == "close" else "the files of 'm' were not released"
    ) in caplog.text
    assert len(retire.unloaded) == 2
    assert prepared.agents.told == ["UNLOAD", "UNLOAD_COMPLETE"]


def test_nothing_retires_nothing_is_waited_for():
    assert Retiring(ModelTable(), lambda model: None).wait(0)


def test_a_member_closes_after_the_ensemble_that_stands_on_it_however_they_are_listed(prepared):
    table, unloaded = ModelTable(), []
    under_test = Retiring(table, unloaded.append)
    member, ensemble = Model(), Model(executing=1)
    ensemble.members = {("m", 1): member}
    for name, model in (("m", member), ("e", ensemble)):
        table.swap(name, {1: model})
        table.swap(name, {})
    under_test.retire(Departure("m", [member], prepared), Departure("e", [ensemble]))
    assert (unloaded, prepared.released) == ([], [])
    ensemble.drained.set()
    assert under_test.wait(10)
    assert sorted(unloaded, key=id) == sorted([member, ensemble], key=id)
    assert prepared.released == [True]


def test_models_whose_files_are_still_needed_leave_them_alone(prepared):
    table = ModelTable()
    table.swap("m", {1: Model()})
    under_test = Retiring(table, lambda model: None)
    under_test.retire(Departure("m", table.swap("m", {})))
    assert under_test.wait(10)
    assert (prepared.agents.told, prepared.released) == ([], [])


def test_many_idle_models_are_closed_by_a_few_threads_and_busy_ones_delay_no_other(prepared, monkeypatch):
    monkeypatch.setattr(retiring, "THREADS", 2)
    table, unloaded = ModelTable(), []
    under_test = Retiring(table, unloaded.append)
    busy = [Model(executing=1) for _ in range(3)]
    idle = [Model() for _ in range(40)]
    departures = []
    for number, model in enumerate([*busy, *idle]):
        table.swap(f"m{number}", {1: model})
        departures.append(Departure(f"m{number}", table.swap(f"m{number}", {})))
    under_test.retire(*departures)
    assert len(under_test._threads) <= 5
    assert not under_test._join(0.2)
    assert set(unloaded) == set(idle)
    for model in busy:
        model.drained.set()
    assert under_test.wait(10)
    assert len(unloaded) == 43


@pytest.mark.parametrize("count", [3, 60])
def test_ensembles_of_ensembles_close_before_what_they_stand_on(count, monkeypatch):
    monkeypatch.setattr(retiring, "THREADS", 2)
    table, unloaded = ModelTable(), []
    under_test = Retiring(table, unloaded.append)
    models = [Model() for _ in range(count)]
    for model in models:
        model.drained.clear()
        model.close = model.drained.set
    for below, above in pairwise(models):
        above.members = {("m", 1): below}
    for number, model in enumerate(models):
        table.swap(f"m{number}", {1: model})
    under_test.retire(*(Departure(f"m{number}", table.swap(f"m{number}", {})) for number in range(count)))
    assert under_test.wait(10)
    assert len(unloaded) == count
    assert not under_test._ensembles
