from __future__ import annotations

import threading

import pytest

from tritonpy import hookimpl
from tritonpy.metrics import Observer
from tritonpy_testing import ObserverContract


class Counting(Observer):
    count = 0

    def responded(self, request, response, now_ns):
        self.count += response.final


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_observers():
        return {"counting": Counting}


class TestCounting(ObserverContract):
    plugin_class = Counting
    plugin = Plugin
    name = "counting"


class Uninterested(Counting):
    events = frozenset()


class NeedsABatch(Counting):
    def responded(self, request, response, now_ns):
        self.duration = now_ns - request.batch.start_ns


class NeedsOutputs(Counting):
    def responded(self, request, response, now_ns):
        self.first = response.outputs[0]


class Finishing(Counting):
    def responded(self, request, response, now_ns):
        response.final = True


class OneThread(Counting):
    def __init__(self, options):
        super().__init__(options)
        self.home = threading.current_thread()

    def responded(self, request, response, now_ns):
        assert threading.current_thread() is self.home


BROKEN = {
    Uninterested: "test_its_events_exist",
    NeedsABatch: "test_it_accepts_every_kind_of_response",
    NeedsOutputs: "test_it_accepts_every_kind_of_response",
    Finishing: "test_it_changes_neither_request_nor_response",
    OneThread: "test_concurrent_calls_are_safe",
}


@pytest.mark.parametrize("observer", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_observer_fails(failures, observer):
    contract = type("Broken", (ObserverContract,), {"plugin_class": observer})
    assert BROKEN[observer] in failures(contract)
