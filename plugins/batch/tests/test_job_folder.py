"""Parts and leases in a folder and in an object store, with faults in between."""

from __future__ import annotations

import os
import socket
import threading

import fsspec
import fsspec.implementations.memory
import msgspec
import psutil
import pytest

from tritonpy_batch import JobFailed, run_batch
from tritonpy_batch.job_folder import FOLDER, JobFolder, Lease, PartRecord, Store


class FaultyStore(fsspec.implementations.memory.MemoryFileSystem):
    """An object store in memory: creates only what is new, and fails now and then."""

    protocol = ("faulty",)
    store: dict[str, object] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    calls = 0
    lost_answers = False
    fault_every = 0
    lock = threading.Lock()

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("faulty://", "memory://", 1))

    def _put(self, path, data, mode):
        with self.lock:
            type(self).calls += 1
            if mode == "create" and self.exists(path):
                raise FileExistsError(path)
            fault = self.fault_every and self.calls % self.fault_every == 0
            if not fault or self.lost_answers:
                super().pipe_file(path, data)
        if fault:
            raise OSError(f"500 for {path}")

    def pipe_file(self, path, value, mode="overwrite", **_):
        self._put(path, value, mode)

    def put_file(self, lpath, rpath, mode="overwrite", **_):
        with open(lpath, "rb") as file:
            self._put(rpath, file.read(), mode)


@pytest.fixture
def faulty(monkeypatch):
    fsspec.register_implementation("faulty", FaultyStore, clobber=True)
    monkeypatch.setattr("tritonpy_batch.job_folder._FIRST_DELAY_S", 0.0)
    FaultyStore.store.clear()
    FaultyStore.calls = 0
    FaultyStore.clear_instance_cache()
    yield FaultyStore
    FaultyStore.fault_every, FaultyStore.lost_answers = 0, False


def record(shard):
    return PartRecord(shard, 1, 0, 1, 1, "")


@pytest.fixture(params=["folder", "object store"])
def store(request, tmp_path, faulty):
    return Store(str(tmp_path / "out") if request.param == "folder" else "faulty://bucket/out")


def test_one_of_two_parts_of_a_shard_is_published(store):
    folders = [JobFolder(store, "txt", 60), JobFolder(store, "txt", 60)]
    outcomes = []
    for number, job_folder in enumerate(folders):
        file = job_folder.scratch()
        file.write_text(f"{number}")
        outcomes.append(job_folder.commit(record(4), file))
        assert not file.exists()
    assert outcomes == [True, False]
    assert folders[0].done() == {4}
    assert store.read("part-00004.txt") == b"0"
    assert folders[1].records() == {4: record(4)}


def test_a_shard_is_leased_to_one_owner(store):
    one, two = JobFolder(store, "txt", 60), JobFolder(store, "txt", 60)
    assert one.claim(1)
    assert not two.claim(1)
    one.release(1)
    assert two.claim(1)
    two.release_all()
    assert one.claim(1)


@pytest.mark.parametrize(
    ("change", "free"),
    [
        ({}, False),
        ({"expires": 1.0}, True),
        ({"pid": 2**22 + 1}, True),
        ({"started": 1.0}, True),
        ({"host": "other"}, False),
        ({"host": "other", "expires": 1.0}, True),
    ],
)
def test_leases_end_with_their_process_or_their_time(store, change, free):
    lease = {
        "owner": "x", "host": socket.gethostname(), "pid": os.getpid(),
        "started": psutil.Process().create_time(), "expires": 2e9, **change,
    }  # fmt: skip
    store.write(f"{FOLDER}/leases/00001.json", msgspec.json.encode(Lease(**lease)))
    assert JobFolder(store, "txt", 60).claim(1) == free


def test_renewed_leases_stay(store):
    one, two = JobFolder(store, "txt", 60), JobFolder(store, "txt", 60)
    one.claim(1)
    one.renew()
    assert not two.claim(1)
    one.release(1)
    one.renew()
    assert two.claim(1)


@pytest.mark.parametrize("lost_answers", [False, True])
def test_a_job_survives_faults_of_the_store(source, options, faulty, lost_answers):
    faulty.fault_every, faulty.lost_answers = 3, lost_answers
    job = options("double", source(100), output="faulty://bucket/out", shard_bytes=1)
    summary = run_batch(job)
    assert (summary.rows, len(summary.parts)) == (100, 10)
    faulty.fault_every = 0
    assert run_batch(job).progress.rows == 0


def test_a_store_that_stays_down_fails_the_job_and_the_rest_is_done_later(
    source, options, faulty, monkeypatch
):
    job = options("double", source(100), output="faulty://bucket/out", shard_bytes=1)
    commit = JobFolder.commit

    def broken(self, found, file):
        if found.shard == 5:
            faulty.fault_every = 1
        return commit(self, found, file)

    monkeypatch.setattr(JobFolder, "commit", broken)
    with pytest.raises(JobFailed, match="500 for"):
        run_batch(job)
    faulty.fault_every = 0
    monkeypatch.setattr(JobFolder, "commit", commit)
    assert 0 < run_batch(job).progress.rows < 100


def test_a_full_disk_fails_the_job_without_a_part(source, options, tmp_path, monkeypatch):
    from tritonpy_batch.part_writer import ParquetPart

    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ParquetPart, "close", full)
    job = options("double", source(20))
    with pytest.raises(JobFailed, match="No space left"):
        run_batch(job)
    assert not list((tmp_path / "out").glob("part-*"))
    monkeypatch.undo()
    assert run_batch(job).rows == 20
