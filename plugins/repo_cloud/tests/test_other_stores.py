"""Other stores of fsspec: supported features and limits."""

from __future__ import annotations

import functools
import os
import secrets
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import fsspec
import pytest

from tritonpy import InvalidArgument
from tritonpy_repo_cloud.cache.partial_file import PIECE
from tritonpy_testing import ModelRepository


class Quiet(SimpleHTTPRequestHandler):
    got: ClassVar[list[str]] = []

    def do_GET(self):
        self.got.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        """Log nothing."""


@pytest.fixture
def web(tmp_path):
    """A web server that lists folders as pages and does not support ranges."""
    root = tmp_path / "web"
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield ModelRepository(root), f"http://127.0.0.1:{server.server_address[1]}/web"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_web_server_without_ranges_sends_whole_files(web, open_url):
    models, url = web
    content = secrets.token_bytes(2 * PIECE + 10)
    models.add("m", "config", {1: {"model.onnx": content, "deep/er": b"x"}})
    repository = open_url(url, settle_s=0)
    listing = repository.find("m")
    assert set(listing.files) == {"config.pbtxt", "1/model.onnx", "1/deep/er"}
    assert (repository.localize(listing) / "1/model.onnx").read_bytes() == content
    assert Quiet.got.count("/web/m/1/model.onnx") == 1
    models.add("m", "a longer config")
    assert repository.find("m").fingerprint != listing.fingerprint
    repository.close()


def test_a_change_is_detected_by_time_only(web, open_url, tmp_path):
    models, url = web
    models.add("m", "config", {1: {"value": b"one"}})
    os.utime(tmp_path / "web/m/1/value", (10**9, 10**9))
    repository = open_url(url, settle_s=0)
    before = repository.find("m")
    assert (repository.localize(before) / "1/value").read_bytes() == b"one"
    models.add("m", versions={1: {"value": b"two"}})
    after = repository.find("m")
    assert after.fingerprint != before.fingerprint
    assert (repository.localize(after) / "1/value").read_bytes() == b"two"
    repository.close()


@pytest.mark.parametrize("header", ["ETag", "Content-Length"])
def test_a_web_server_s_tag_is_no_checksum_and_a_file_without_a_length_is_refused(
    web, open_url, monkeypatch, header
):
    models, url = web
    models.add("m", "config", {1: {"value": b"content"}})
    send = Quiet.send_header
    own = {
        "ETag": ("ETag", f'"{"0123456789abcdef" * 2}"'),
        "Content-Length": ("Connection", "close"),
    }[header]

    def answer(self, name, value):
        send(self, *(own if name in {"Last-Modified", header} else (name, value)))

    monkeypatch.setattr(Quiet, "send_header", answer)
    repository = open_url(url, settle_s=0)
    if header == "ETag":
        listing = repository.find("m")
        assert (repository.localize(listing) / "1/value").read_bytes() == b"content"
    else:
        with pytest.raises(InvalidArgument, match="has a file of unknown size: 'm/1/value'"):
            repository.localize(repository.find("m"))
    repository.close()


def test_models_come_from_memory(tmp_path, open_url):
    memory = fsspec.filesystem("memory")
    root = f"/{secrets.token_hex(8)}"
    memory.pipe_file(f"{root}/m/1/model", b"content")
    memory.makedirs(f"{root}/empty/1")
    repository = open_url(f"memory:/{root}", settle_s=0)
    assert {name: set(listing.files) for name, listing in repository.scan().items()} == {
        "m": {"1/model"},
        "empty": {"1/"},
    }
    assert (repository.localize(repository.find("m")) / "1/model").read_bytes() == b"content"
    memory.pipe_file(f"{root}/m/1/model", b"CONTENT")
    assert (repository.localize(repository.find("m")) / "1/model").read_bytes() == b"CONTENT"
    repository.close()
