"""What fsspec reads beside the clouds: with what it can do, and what it cannot."""

from __future__ import annotations

import functools
import secrets
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import fsspec
import pytest

from tritonpy.testing import ModelRepository
from tritonpy_repo_cloud.cache.partial import PIECE


class Quiet(SimpleHTTPRequestHandler):
    got: ClassVar[list[str]] = []

    def do_GET(self):
        self.got.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.fixture
def web(tmp_path):
    """A web server that lists folders as pages and answers no range."""
    root = tmp_path / "web"
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield ModelRepository(root), f"http://127.0.0.1:{server.server_address[1]}/web"
    server.shutdown()
    server.server_close()
    thread.join()


def test_models_come_from_a_web_server_whole_where_it_answers_no_ranges(web, open_url):
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
