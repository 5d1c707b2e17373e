from __future__ import annotations

from typing import ClassVar

import pytest

from tritonpy import hookimpl
from tritonpy.tracing import TraceSink
from tritonpy_testing import TraceSinkContract


class Counting(TraceSink):
    headers = ("caller",)
    count = 0

    def propagated(self, headers):
        return headers.get("caller") if headers.get("caller") == "known" else None

    def take(self, family):
        self.count += len(family.traces)


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_trace_sinks():
        return {"counting": Counting}


class TestCounting(TraceSinkContract):
    plugin_class = Counting
    plugin = Plugin
    name = "counting"
    caller_headers: ClassVar = {"caller": "known"}


class NeedsAModel(Counting):
    def take(self, family):
        assert all(trace.model_name for trace in family.traces)


class Credulous(Counting):
    def propagated(self, headers):
        return headers


class Shouting(Counting):
    headers = ("Caller",)

    def propagated(self, headers):
        return None


class Numeric(Counting):
    def public_options(self):
        return {"size": 7}


class Deaf(Counting):
    headers = ()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (NeedsAModel, "test_it_accepts_every_kind_of_family"),
        (Credulous, "test_malformed_headers_continue_no_trace"),
        (Shouting, "test_malformed_headers_continue_no_trace"),
        (Numeric, "test_displayed_settings_are_text"),
        (Deaf, "test_a_caller_s_trace_is_continued"),
    ],
)
def test_a_broken_sink_fails(kind, test):
    contract = TestCounting()
    contract.plugin_class = kind
    with pytest.raises(AssertionError):
        getattr(contract, test)()
