"""The contract of repositories, on every store.

Faults, credentials and the cache have their own tests.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from typing import ClassVar

import pytest

import tritonpy_repo_cloud
from tritonpy import InvalidArgument, StartupError, Unavailable
from tritonpy.plugins import install_command
from tritonpy_config.server import decode_options
from tritonpy_repo_cloud.cache.partial_file import PIECE
from tritonpy_repo_cloud.repository import CloudRepository
from tritonpy_repo_cloud.store_errors import StoreError
from tritonpy_testing import RepositoryContract

from .stores.store_folder import QUICK

ONE = {"one": {"config.pbtxt": b"a", "1/model.onnx": b"first"}}


class InAStore(RepositoryContract):
    plugin_class = CloudRepository
    plugin = tritonpy_repo_cloud
    server = ""

    @pytest.fixture(autouse=True)
    def _in_the_server(self, place_in):
        self.here = place_in(self.server)

    def make_options(self):
        return decode_options(CloudRepository.Options, self.here.options(settle_s=0), "options")

    def place(self, tmp_path, models):
        self.here.fill(models)
        return self.here.url()


class TestMoto(InAStore):
    server = "moto"
    name = "s3"


class TestS3rver(InAStore):
    server = "s3rver"
    name = "s3"


class TestGcs(InAStore):
    server = "gcs"
    name = "gs"


class TestAzurite(InAStore):
    server = "azurite"
    name = "as"


class TestAnythingElse(RepositoryContract):
    plugin_class = CloudRepository
    plugin = tritonpy_repo_cloud
    name = "*"
    options: ClassVar = {**QUICK, "settle_s": 0}
    unreachable_url = "memory://nowhere/at/all"

    def place(self, tmp_path, models):
        import fsspec

        memory = fsspec.filesystem("memory")
        root = f"/{hashlib.sha256(str(tmp_path).encode()).hexdigest()}"
        if memory.exists(root):
            memory.rm(root, recursive=True)
        memory.makedirs(root)
        for name, files in models.items():
            for path, content in files.items():
                memory.pipe_file(f"{root}/{name}/{path}", content)
        return f"memory:/{root}"


def test_a_large_file_comes_in_pieces_and_small_ones_as_they_are(place, proxied):
    content = secrets.token_bytes(2 * PIECE + 5)
    place.fill({"m": {"1/model.onnx": content, "1/empty": b"", "config.pbtxt": b"x"}})
    proxy = proxied(place)
    repository = place.repository(proxy.port)
    folder = repository.localize(repository.find("m"))
    assert (folder / "1/model.onnx").read_bytes() == content
    assert (folder / "1/empty").read_bytes() == b""
    assert len(proxy.data_requests()) == 4
    repository.close()


def test_only_what_changed_is_fetched_again(place, proxied):
    place.fill({"m": {"1/model.onnx": b"same", "config.pbtxt": b"before"}})
    proxy = proxied(place)
    repository = place.repository(proxy.port)
    before = repository.localize(repository.find("m"))
    proxy.requests.clear()
    place.put("m/config.pbtxt", b"after!!")
    after = repository.localize(repository.find("m"))
    assert [each.path for each in proxy.data_requests() if "config" not in each.path] == []
    assert len(proxy.data_requests()) == 1
    assert (before / "config.pbtxt").read_bytes() == b"before"
    assert (after / "config.pbtxt").read_bytes() == b"after!!"
    assert (after / "1/model.onnx").read_bytes() == b"same"
    repository.close()


def test_model_folders_are_read_only(place_in):
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository()
    folder = repository.localize(repository.find("one"))
    assert [oct(path.stat().st_mode & 0o222) for path in (folder, *folder.rglob("*"))] == [
        "0o0"
    ] * 4
    repository.release(folder)
    assert not folder.exists()
    repository.close()


def test_a_version_may_be_an_empty_folder(place_in):
    place = place_in("moto")
    place.fill({"ensemble": {"config.pbtxt": b"x", "1/": b""}})
    repository = place.repository()
    listing = repository.scan()["ensemble"]
    assert set(listing.files) == {"config.pbtxt", "1/"}
    assert (repository.localize(listing) / "1").is_dir()
    repository.close()


def test_hidden_folders_and_files_at_the_top_are_no_models(place):
    place.fill({**ONE, ".git": {"HEAD": b"x"}})
    place.put("README", b"read me")
    repository = place.repository()
    assert list(repository.scan()) == ["one"] == list(repository.names())
    repository.close()


@pytest.mark.parametrize("path", ["../outside", "1/../../outside", "1//model", "/etc/passwd"])
def test_a_name_that_leaves_the_folder_is_refused(place_in, path):
    place = place_in("moto")
    place.fill({"m": {"1/model.onnx": b"x"}})
    place.put(f"m/{path}", b"evil")
    repository = place.repository()
    with pytest.raises(InvalidArgument, match="has a file whose name is not a valid path"):
        repository.localize(repository.find("m"))
    repository.close()


def test_two_repositories_in_one_place_share_the_cache(place, proxied):
    place.fill(ONE)
    proxy = proxied(place)
    first, second = place.repository(proxy.port), place.repository(proxy.port)
    one = first.localize(first.find("one"))
    fetched = len(proxy.data_requests())
    two = second.localize(second.find("one"))
    assert len(proxy.data_requests()) == fetched == 2
    first.close()
    assert not one.exists()
    assert (two / "1/model.onnx").read_bytes() == b"first"
    second.close()


def test_a_missing_bucket_is_an_error(place):
    place.vanish()
    repository = place.repository()
    for ask in (repository.scan, repository.names, lambda: repository.find("one")):
        with pytest.raises(StoreError, match="it does not exist"):
            ask()
    repository.close()


def test_a_removed_bucket_keeps_the_known_models(place, caplog):
    place.fill(ONE)
    repository = place.repository()
    before = repository.scan()
    place.vanish()
    assert repository.scan() == before
    assert "it does not exist" in caplog.text
    assert "loaded models continue to serve" in caplog.text
    with pytest.raises(Unavailable, match="it does not exist"):
        repository.find("one")
    repository.close()


def test_an_incomplete_model_is_not_listed_and_an_error_on_find(place_in, caplog):
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository(complete_when="marker", completion_timeout_s=0)
    assert repository.scan() == {}
    assert "its marker file '_SUCCESS' does not exist" in caplog.text
    with pytest.raises(
        Unavailable, match=r"model 'one' is not completely uploaded to .*: its marker file"
    ):
        repository.find("one")
    place.put("one/_SUCCESS", b"")
    listing = repository.scan()["one"]
    assert set(listing.files) == {"config.pbtxt", "1/model.onnx"}
    repository.close()


def test_a_model_being_updated_stays_unchanged_until_complete(place_in):
    place = place_in("moto")
    place.fill({"one": {**ONE["one"], "_SUCCESS": b""}})
    repository = place.repository(complete_when="marker", completion_timeout_s=0)
    before = repository.scan()
    place.delete("one/_SUCCESS")
    place.put("one/1/model.onnx", b"second")
    assert repository.scan() == before
    place.put("one/_SUCCESS", b"")
    assert repository.scan() != before
    repository.close()


def test_the_start_waits_until_an_upload_settles(place_in):
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository(settle_s=0.2, completion_timeout_s=60)
    assert list(repository.scan()) == ["one"]
    assert list(repository.find("one").files) == ["1/model.onnx", "config.pbtxt"]
    repository.close()


def test_a_changing_model_is_not_listed(place_in):
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository(settle_s=60, completion_timeout_s=0)
    assert repository.scan() == {}
    with pytest.raises(Unavailable, match="its files changed less than 60 s ago"):
        repository.find("one")
    repository.close()


def test_a_cached_model_is_complete_immediately(place_in):
    place = place_in("moto")
    place.fill(ONE)
    first = place.repository()
    first.localize(first.find("one"))
    first.close()
    second = place.repository(settle_s=60, completion_timeout_s=0)
    assert list(second.scan()) == ["one"]
    second.close()


def test_a_wait_ends_when_the_server_stops(place_in):
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository(settle_s=60, completion_timeout_s=600)
    repository.interrupt()
    with pytest.raises(Unavailable, match="Server exiting"):
        repository.scan()
    repository.close()


def test_a_scheme_that_nothing_knows_is_refused_at_the_start(tmp_path, open_url):
    with pytest.raises(
        StartupError, match="no plugin provides 'nosuch', and fsspec does not know it"
    ):
        open_url("nosuch://somewhere")


@pytest.mark.parametrize(("url", "extra"), [("s3://b", "s3"), ("gs://b", "gs"), ("as://a/c", "as")])
def test_a_library_that_is_missing_is_named_by_its_extra(monkeypatch, open_url, url, extra):
    import fsspec

    def missing(protocol):
        raise ImportError("Install something")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(
        StartupError, match=re.escape(install_command(f"tritonpy-repo-cloud[{extra}]"))
    ):
        open_url(url)


def test_the_cache_is_where_triton_s_variable_says(monkeypatch, tmp_path, place_in):
    monkeypatch.setenv("TRITON_AWS_MOUNT_DIRECTORY", str(tmp_path / "mounted"))
    place = place_in("moto")
    place.fill(ONE)
    repository = place.repository()
    folder = repository.localize(repository.find("one"))
    assert folder.is_relative_to(tmp_path / "mounted")
    assert os.stat(folder / "config.pbtxt").st_nlink == 2
    repository.close()
