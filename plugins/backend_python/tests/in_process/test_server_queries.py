"""Metrics and logs are equal in a worker and in the server's process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tritonpy.metrics import FamilySnapshot
from tritonpy_testing import RunningServer

from ..serving import wait_for
from .modes import MODES, both, query

METHODS = """
def initialize(self, args):
    self.families, self.metrics = {}, {}

def do_steps(self, request, *steps):
    return [self.step(*step) for step in steps]

def step(self, name, *arguments):
    try:
        return getattr(self, "step_" + name)(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def step_family(self, key, name, kind):
    self.families[key] = pb_utils.MetricFamily(name=name, description="what", kind=getattr(pb_utils.MetricFamily, kind))

def step_metric(self, key, family, labels=None, buckets=None):
    self.metrics[key] = self.families[family].Metric(labels=labels, **({} if buckets is None else {"buckets": buckets}))

def step_do(self, key, verb, *arguments):
    return getattr(self.metrics[key], verb)(*arguments)

def step_drop(self, key):
    del self.metrics[key]
    gc.collect()

def step_drop_family(self, key):
    del self.families[key]
    gc.collect()

def step_circle(self, name):
    family = pb_utils.MetricFamily(name=name, description="what", kind=pb_utils.MetricFamily.GAUGE)
    circle = [family, family.Metric()]
    circle.append(circle)
    del family, circle
    gc.collect()
"""
STEPS: list[tuple[Any, ...]] = [
    ("family", "c", "NAME_total", "COUNTER"),
    ("metric", "c", "c", {"a": "1"}),
    ("do", "c", "increment", 2),
    ("do", "c", "increment", -1),
    ("do", "c", "value"),
    ("do", "c", "set", 1),
    ("metric", "again", "c", {"a": "1"}),
    ("do", "again", "increment", 3),
    ("do", "c", "value"),
    ("family", "h", "NAME_seconds", "HISTOGRAM"),
    ("metric", "h", "h", {}, [0.1, 1]),
    ("do", "h", "observe", 0.5),
    ("do", "h", "value"),
    ("family", "bad", "1 bad name", "GAUGE"),
    ("family", "server", "nv_inference_count", "COUNTER"),
    ("family", "other", "NAME_total", "GAUGE"),
    ("metric", "bad", "c", {"a": 1}),
    ("metric", "wrong", "h", {}, [2, 1]),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), METHODS) as running:
        yield running


def steps(mode: str) -> list[list[Any]]:
    return [
        [each.replace("NAME", mode) if isinstance(each, str) else each for each in step]
        for step in STEPS
    ]


def families_of(server: RunningServer, mode: str) -> list[FamilySnapshot]:
    return [family for family in server.engine.custom_metrics() if family.name.startswith(mode)]


def test_metrics_are_equal_in_both_modes(server: RunningServer) -> None:
    one, other = (query(server, mode, "steps", *steps(mode)) for mode in MODES)
    assert one == other
    counters, histograms = families_of(server, "m_thread")
    assert [(metric.labels, metric.value) for metric in counters.metrics] == [({"a": "1"}, 5.0)]
    assert histograms.metrics[0].histogram is not None


@pytest.mark.parametrize("mode", MODES)
def test_metrics_end_with_their_objects(server: RunningServer, mode: str) -> None:
    name = f"{mode}_dropped"
    query(
        server,
        mode,
        "steps",
        ["family", "g", name, "GAUGE"],
        ["metric", "g", "g"],
        ["do", "g", "set", 4],
    )
    assert [metric.value for family in families_of(server, name) for metric in family.metrics] == [
        4.0
    ]
    query(server, mode, "steps", ["drop_family", "g"])
    wait_for(lambda: not families_of(server, name))
    assert "has been deleted" in query(server, mode, "steps", ["do", "g", "set", 1])[0]
    query(server, mode, "steps", ["drop", "g"])


def test_metrics_can_be_garbage_collected_at_any_time(server: RunningServer) -> None:
    for number in range(20):
        assert query(server, "m_thread", "steps", ["circle", f"m_thread_circle_{number}"]) == [None]
    wait_for(lambda: not families_of(server, "m_thread_circle"))


def test_metrics_of_a_model_end_with_it(tmp_path: Path) -> None:
    with both(tmp_path, METHODS, control={"mode": "explicit", "load": list(MODES)}) as server:
        for mode in MODES:
            query(server, mode, "steps", *steps(mode))
            server.engine.unload_model(mode)
            wait_for(lambda mode=mode: not families_of(server, mode))


TALKING = """
def do_talk(self, request):
    for log in (pb_utils.Logger.log_info, pb_utils.Logger.log_warn, pb_utils.Logger.log_error, pb_utils.Logger.log_verbose):
        log("said ü")
    print("printed", 1, sep="-")
    print("in two", end=" ")
    print("parts\\nand lines")
    print("without an end", end="")

def do_print_to(self, request):
    print("to a stream", file=sys.stderr)

def do_thread(self, request):
    thread = threading.Thread(target=lambda: (pb_utils.Logger.log_info("from a thread"), print("a thread too")))
    thread.start()
    thread.join()
"""


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), TALKING) as running:
        yield running


def test_log_lines_name_the_model_and_its_requests(
    talking: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    found = {}
    # Set each level: a command in this process may have changed them.
    with (
        caplog.at_level("DEBUG", logger="tritonpy"),
        caplog.at_level("DEBUG", logger="tritonpy.model"),
    ):
        for mode in MODES:
            caplog.clear()
            query(talking, mode, "talk", id="7")
            wait_for(lambda: "without an end" in caplog.text)
            found[mode] = [
                (
                    record.levelname,
                    record.getMessage(),
                    record.request_id,
                    record.version,
                    record.instance.replace(mode, "M"),
                )
                for record in caplog.records
                if record.name == "tritonpy.model"
            ]
            assert {
                record.model for record in caplog.records if record.name == "tritonpy.model"
            } == {mode}
    assert found["m_process"] == found["m_thread"]
    assert [message for _, message, *_ in found["m_thread"][4:]] == [
        "printed-1",
        "in two parts",
        "and lines",
        "without an end",
    ]


def test_threads_of_a_model_are_identified_by_its_code(
    talking: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="tritonpy"):
        for mode in MODES:
            caplog.clear()
            query(talking, mode, "thread")
            wait_for(lambda: "a thread too" in caplog.text)
            assert {
                (record.model, record.getMessage())
                for record in caplog.records
                if record.name == "tritonpy.model"
            } == {
                (mode, "from a thread"),
                (mode, "a thread too"),
            }


def test_the_servers_streams_are_not_replaced(
    talking: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    query(talking, "m_thread", "talk")
    assert capsys.readouterr().out == ""
    query(talking, "m_thread", "print_to")
    assert "to a stream\n" in capsys.readouterr().err
