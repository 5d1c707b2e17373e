"""Faults between server and store: clear errors, retries, and no partially loaded models."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import threading

import pytest

from tritonpy import Unavailable
from tritonpy.repository import ModelChanged
from tritonpy_repo_cloud.cache.partial_file import PIECE
from tritonpy_repo_cloud.store_errors import FailureKind, StoreError

from .stores.proxy import Fault, is_data

SMALL = {"m": {"1/model.onnx": b"content", "config.pbtxt": b"x"}}


def files_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def first(count, fault, where=lambda request: True):
    """Return a rule that injects this fault into the first `count` requests selected by `where`."""
    left, guard = [count], threading.Lock()

    def rule(request):
        with guard:
            if left[0] and where(request):
                left[0] -= 1
                return fault
        return None

    return rule


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(status=503), Fault(cut_after=0)], ids=["500", "503", "cut"]
)
def test_a_failed_listing_is_retried(place, proxied, fault):
    place.fill(SMALL)
    proxy = proxied(place)
    proxy.rule = first(1, fault)
    repository = place.repository(proxy.port, settle_s=0)
    assert set(repository.scan()["m"].files) == set(SMALL["m"])
    repository.close()


def test_a_permanently_failing_store_raises_its_reason(place, proxied):
    place.fill(SMALL)
    proxy = proxied(place)
    proxy.rule = lambda request: Fault(status=500)
    repository = place.repository(proxy.port, attempts=2)
    with pytest.raises(StoreError, match=r"cannot be listed: it cannot be reached") as failure:
        repository.scan()
    assert failure.value.kind is FailureKind.UNREACHABLE
    assert len(proxy.requests) in {2, 4}  # Azure's library sends each request twice
    repository.close()


def test_a_cut_in_the_middle_of_a_file_fetches_the_missing_piece_alone(place, proxied):
    content = secrets.token_bytes(3 * PIECE)
    place.fill({"m": {"1/model.onnx": content}})
    proxy = proxied(place)
    proxy.rule = first(1, Fault(cut_after=1000), is_data)
    repository = place.repository(proxy.port)
    folder = repository.localize(repository.find("m"))
    assert (folder / "1/model.onnx").read_bytes() == content
    assert len(proxy.data_requests()) == 4
    repository.close()


def test_an_abandoned_download_is_resumed(place, proxied):
    content = secrets.token_bytes(3 * PIECE)
    place.fill({"m": {"1/model.onnx": content}})
    proxy = proxied(place)
    wanted = []

    def last_piece(request):
        wanted.append(request)
        return (
            Fault(cut_after=10)
            if is_data(request) and f"bytes={2 * PIECE}-" in str(request.headers)
            else None
        )

    proxy.rule = last_piece
    repository = place.repository(proxy.port, parallel=1, attempts=1)
    with pytest.raises(StoreError, match=r"cannot be read \(m/1/model.onnx\)"):
        repository.localize(repository.find("m"))
    repository.close()
    proxy.rule = lambda request: None
    proxy.requests.clear()
    again = place.repository(proxy.port)  # another server, after a crash
    assert files_in(again.localize(again.find("m"))) == {"1/model.onnx": content}
    assert len(proxy.data_requests()) == 1
    again.close()


def test_a_load_that_fails_leaves_nothing_in_use(place_in, proxied):
    place = place_in("moto")
    place.fill(SMALL)
    proxy = proxied(place)
    proxy.rule = lambda request: Fault(status=500) if is_data(request) else None
    repository = place.repository(proxy.port, attempts=1)
    with pytest.raises(StoreError):
        repository.localize(repository.find("m"))
    assert [
        path
        for path in (place.cache / "repositories" / "leases").glob("*/*/*")
        if path.name != "lock"
    ] == []
    repository.close()


def test_a_file_that_changes_while_it_is_fetched_is_noticed(place, proxied):
    place.fill({"m": {"1/model.onnx": b"a" * PIECE + b"a" * 100}})
    proxy = proxied(place)

    def swap(request):
        if is_data(request) and len(proxy.data_requests()) == 2:
            place.put("m/1/model.onnx", b"b" * PIECE + b"b" * 100)

    proxy.rule = swap
    repository = place.repository(proxy.port, parallel=1)
    with pytest.raises(ModelChanged, match=r"model 'm' changed while it was fetched: 1/model.onnx"):
        repository.localize(repository.find("m"))
    folder = repository.localize(repository.find("m"))
    assert (folder / "1/model.onnx").read_bytes() == b"b" * (PIECE + 100)
    repository.close()


def test_a_file_that_vanishes_before_it_is_fetched_is_a_change(place):
    place.fill(SMALL)
    repository = place.repository()
    listing = repository.find("m")
    place.delete("m/1/model.onnx")
    with pytest.raises(ModelChanged, match=r"1/model.onnx"):
        repository.localize(listing)
    repository.close()


def test_a_damaged_download_is_retried(place_in, proxied, monkeypatch):
    place = place_in("moto")
    place.fill(SMALL)
    repository = place.repository()
    read, damaged = repository._store.read, []

    def noisy(file, start, end):
        data = read(file, start, end)
        if file.path.endswith("model.onnx") and not damaged:
            damaged.append(file.path)
            return b"?" + data[1:]
        return data

    monkeypatch.setattr(repository._store, "read", noisy)
    assert files_in(repository.localize(repository.find("m"))) == SMALL["m"]
    assert damaged
    repository.close()


def test_repeated_damage_is_an_error_with_both_checksums(place_in, monkeypatch):
    place = place_in("moto")
    place.fill(SMALL)
    repository = place.repository(attempts=2)
    monkeypatch.setattr(repository._store, "read", lambda file, start, end: b"?" * (end - start))
    with pytest.raises(
        Unavailable,
        match=r"is damaged: its md5 is [0-9a-f]{32}, but the store reports [0-9a-f]{32}",
    ):
        repository.localize(repository.find("m"))
    repository.close()


def test_a_slow_link_is_waited_for(place_in, proxied):
    place = place_in("moto")
    place.fill({"m": {"1/model.onnx": bytes(200_000)}})
    proxy = proxied(place)
    proxy.rule = lambda request: Fault(rate=40_000) if is_data(request) else None
    repository = place.repository(
        proxy.port, read_timeout_s=3.5
    )  # the read timeout applies to silence only: the file takes five seconds
    assert (repository.localize(repository.find("m")) / "1/model.onnx").stat().st_size == 200_000
    assert len(proxy.data_requests()) == 1
    repository.close()


@pytest.mark.parametrize("name", ["moto", "gcs", "azurite"])
def test_a_silent_connection_times_out(place_in, proxied, name):
    place = place_in(name)
    place.fill(SMALL)
    proxy = proxied(place)
    proxy.rule = first(1, Fault(hang=True), is_data)
    repository = place.repository(proxy.port, read_timeout_s=3)
    assert files_in(repository.localize(repository.find("m"))) == SMALL["m"]
    repository.close()


def test_a_download_ends_when_the_server_stops(place_in, proxied):
    place = place_in("moto")
    place.fill(SMALL)
    proxy = proxied(place)
    reached = threading.Event()

    def never(request):
        if is_data(request):
            reached.set()
            return Fault(status=500)
        return None

    proxy.rule = never
    repository = place.repository(proxy.port, attempts=1000)
    listing = repository.find("m")
    errors = []

    def localize():
        try:
            repository.localize(listing)
        except Unavailable as error:
            errors.append(error.message)

    thread = threading.Thread(target=localize)
    thread.start()
    assert reached.wait(30)
    repository.interrupt()
    thread.join(30)
    assert errors == ["Server exiting"]
    repository.close()


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
            check=False,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_reported_with_the_numbers_and_leaves_nothing(place_in, small_disk):
    place = place_in("moto")
    place.fill({"m": {"1/model.onnx": bytes(3_000_000)}})
    repository = place.repository(cache_directory=str(small_disk / "cache"))
    with pytest.raises(
        Unavailable,
        match=r"the disk of the model cache is full: 3000000 bytes are needed in .*, \d+ are free",
    ):
        repository.localize(repository.find("m"))
    assert list((small_disk / "cache" / "partial").glob("*/[0-9a-f]*")) == []
    repository.close()


def test_unused_files_are_evicted_when_the_disk_is_full(place_in, small_disk):
    place = place_in("moto")
    place.fill({name: {"1/model.onnx": secrets.token_bytes(600_000)} for name in ("a", "b")})
    repository = place.repository(cache_directory=str(small_disk / "cache"))
    repository.release(repository.localize(repository.find("a")))
    folder = repository.localize(repository.find("b"))
    assert (folder / "1/model.onnx").stat().st_size == 600_000
    with pytest.raises(Unavailable, match="the disk of the model cache is full"):
        repository.localize(repository.find("a"))
    repository.close()
