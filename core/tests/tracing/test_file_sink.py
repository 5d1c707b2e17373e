from __future__ import annotations

import json

import pytest

from tritonpy.repository import builtin
from tritonpy.tracing.file_sink import FileOptions, FileSink
from tritonpy_testing import TraceSinkContract

from .families import ended_family, rule


class TestTraceFiles(TraceSinkContract):
    plugin_class = FileSink
    plugin = builtin
    name = "triton"

    @pytest.fixture(autouse=True)
    def in_a_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def make(self):
        return FileSink(FileOptions(file="traces.json"))


@pytest.fixture
def sink(tmp_path):
    return FileSink(FileOptions(file=str(tmp_path / "t")))


def written(folder):
    """Return the number of families in each file."""
    return {
        path.name: sum("request_id" in record for record in json.loads(path.read_text()))
        for path in sorted(folder.iterdir())
    }


def take(sink, made, count):
    for _ in range(count):
        made.taken += 1
        sink.take(ended_family(chosen_by=made, request_id="x"))


def test_without_a_frequency_everything_is_written_at_the_end(sink, tmp_path):
    take(sink, rule(), 3)
    assert written(tmp_path) == {}
    sink.close()
    assert written(tmp_path) == {"t": 3}


def test_a_frequency_sets_the_traces_per_file(sink, tmp_path):
    take(sink, rule(log_frequency=2), 5)
    assert written(tmp_path) == {"t.0": 2, "t.1": 2}
    sink.close()
    assert written(tmp_path) == {"t.0": 2, "t.1": 2, "t.2": 1}


def test_the_requested_count_completes_a_file(sink, tmp_path):
    made = rule(rate=2, count=2)
    assert [made.sample(continues=False) for _ in range(6)].count(True) == 2
    take(sink, made, 1)
    assert written(tmp_path) == {}
    take(sink, made, 1)
    assert written(tmp_path) == {"t.0": 2}
    sink.close()
    assert written(tmp_path) == {"t.0": 2}


def test_traces_of_a_replaced_rule_are_written(sink, tmp_path):
    old, new = rule(), rule()
    take(sink, old, 2)
    sink.settled(old)
    sink.settled(new)
    assert json.loads((tmp_path / "t").read_text() + "]")
    take(sink, new, 1)
    sink.close()
    assert written(tmp_path) == {"t": 3}


def test_many_pending_traces_are_written_early(sink, tmp_path, monkeypatch):
    monkeypatch.setattr("tritonpy.tracing.file_sink._MAX_PENDING", 1000)
    made = rule()
    take(sink, made, 10)
    assert (tmp_path / "t").stat().st_size > 1000
    sink.close()
    assert written(tmp_path) == {"t": 10}


def test_without_a_file_the_missing_setting_is_named():
    assert FileSink(FileOptions()).missing() == "trace file name is not given"
