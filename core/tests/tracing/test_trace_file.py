from __future__ import annotations

import json
import resource
import signal

import pytest

from tritonpy.tracing.trace_file import TraceFile


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
