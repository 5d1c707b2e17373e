from __future__ import annotations

import json
import resource
import signal

import numpy as np
import pytest

from tritonpy.repository import builtin
from tritonpy.tracing.file_sink import FileOptions, FileSink, TraceFile, records
from tritonpy_testing import TraceSinkContract
from tritonpy_types import Tensor, TraceLevel

from .families import ended_family, family, rule, tensor


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


def decoded(made):
    return json.loads(b"[%b]" % records(made))


def test_each_trace_starts_with_its_identity_record():
    made = ended_family(TraceLevel.TIMESTAMPS, request_id="an id")
    root, child = made.traces
    found = decoded(made)
    assert found[0] == {"id": root.id, "model_name": "m", "model_version": 1, "request_id": "an id"}
    assert found[1] == {
        "id": root.id,
        "timestamps": [{"name": "REQUEST_START", "ns": made.begun_ns}],
    }
    assert {
        "id": child.id,
        "model_name": "called",
        "model_version": 2,
        "parent_id": root.id,
    } in found
    order = [record["id"] for record in found]
    assert order == sorted(order)


def test_earlier_time_stamps_of_frontends_come_first():
    made = family(TraceLevel.TIMESTAMPS)
    made.trace().stamp("HTTP_RECV_START", 7)
    assert decoded(made) == [
        {"id": made.traces[0].id, "timestamps": [{"name": "HTTP_RECV_START", "ns": 7}]}
    ]


@pytest.mark.parametrize(
    ("given", "data", "shape"),
    [
        (tensor("T", [[1, -2], [3, 4]], np.int8), "1,-2,3,4", "2,2"),
        (tensor("T", [1.5, 1e10, np.nan, np.inf], np.float32), "1.5,1e+10,nan,inf", "4"),
        (tensor("T", [1 / 3], np.float64), "0.333333", "1"),
        (tensor("T", [True, False], np.bool_), "1,0", "2"),
        (tensor("T", [2**64 - 1], np.uint64), "18446744073709551615", "1"),
        (tensor("T", [1.0], np.float16), "", "1"),
        (tensor("T", [], np.int32), "", "0"),
        (Tensor.from_numpy("T", np.array([b'a"', b"\xff"], np.object_)), '"a"","\\xff"', "2"),
    ],
)
def test_tensors_are_written_as_triton_writes_them(given, data, shape):
    made = family(TraceLevel.TENSORS)
    made.trace().tensors("TENSOR_QUEUE_INPUT", [given])
    (record,) = decoded(made)
    assert record["activity"] == "TENSOR_QUEUE_INPUT"
    assert record["tensor"] == {"name": "T", "data": data, "shape": shape, "dtype": given.datatype}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.json"


@pytest.fixture
def small_disk():
    """Limit the size of files to the size that the test sets."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def read(path):
    return json.loads(path.read_text())


def test_numbered_files_are_complete(path):
    file = TraceFile(path)
    file.write_next([b"1", b"2"])
    file.write_next([b"3"])
    assert read(path.with_name("t.json.0")) == [1, 2]
    assert read(path.with_name("t.json.1")) == [3]
    file.close()
    assert not path.exists()


def test_appended_traces_are_complete_after_close(path):
    path.write_text("from another run")
    file = TraceFile(path)
    file.append([b"1"])
    file.append([b"2", b"3"])
    file.close()
    assert read(path) == [1, 2, 3]


def test_a_folder_that_is_not_there_is_logged_once(path, caplog):
    file = TraceFile(path.parent / "missing" / "t.json")
    for _ in range(3):
        file.append([b"1"])
        file.write_next([b"1"])
    file.close()
    (record,) = caplog.records
    assert record.getMessage().startswith("traces are lost: cannot write '")
    assert record.getMessage().endswith("No such file or directory")


def test_a_full_disk_loses_only_the_traces_of_that_time(path, caplog, small_disk):
    file = TraceFile(path)
    file.append([b'"first"'])
    small_disk(12)
    for _ in range(3):
        file.append([b'"lost, for it is too long"'])
        file.write_next([b'"lost, for it is too long"'])
    small_disk(resource.RLIM_INFINITY)
    file.append([b'"last"'])
    file.close()
    assert read(path) == ["first", "last"]
    assert [found.name for found in path.parent.iterdir()] == ["t.json"]
    assert len(caplog.records) == 1
    assert "File too large" in caplog.text
