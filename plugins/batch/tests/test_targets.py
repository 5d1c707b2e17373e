"""Jobs run on servers as in this process, and requests of OpenAI's format are answered."""

from __future__ import annotations

import http.server
import json
import threading
from collections import Counter
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tritonpy import running_server
from tritonpy_batch import JobFailed, run_batch


@pytest.fixture
def server(repository):
    config = {
        "repositories": [{"url": str(repository)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
        "control": {"mode": "explicit", "load": ["double", "classes", "poison", "echo"]},
    }
    with running_server(config) as running:
        yield f"http://{running.http}"


def test_a_server_gives_the_bytes_of_this_process(source, options, server, tmp_path):
    folder = source(60)
    run_batch(options("double", folder, keep=("id",)))
    remote = options(
        "double", folder, keep=("id",), url=server, repository="", output=str(tmp_path / "remote")
    )
    run_batch(remote)
    ours, theirs = (
        (tmp_path / each / "part-00000.parquet").read_bytes() for each in ("out", "remote")
    )
    assert ours == theirs


def test_texts_classes_and_poison_rows_over_http(options, server, tmp_path, read):
    np.save(tmp_path / "x.npy", np.array([[0, 3, 1, 2]], np.float32))
    pq.write_table(pa.table({"X": ["a", "ü"]}), tmp_path / "echo.parquet")
    pq.write_table(pa.table({"X": [1.0, 13.0, 3.0]}), tmp_path / "poison.parquet")

    def rows(model, file, **more):
        output = str(tmp_path / model)
        job = options(model, tmp_path / file, url=server, repository="", output=output, **more)
        return read(run_batch(job).output)

    assert rows("classes", "x.npy", top=1)[0]["Y"][0]["label"] == "one"
    assert [row["Y"] for row in rows("echo", "echo.parquet")] == ["a", "ü"]
    poison = rows("poison", "poison.parquet", max_errors="1")
    assert [row["Y"] for row in poison] == [2.0, None, 6.0]
    assert "13 is not allowed" in poison[1]["_error"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers chat completions; the first call of each row has status 429."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][0]["content"]
        self.seen[text] += 1
        status, reply = 200, {"path": self.path, "echo": text}
        if self.seen[text] == 1:
            status, reply = 429, {"error": {"message": "slow down"}}
        elif text == "bad":
            status, reply = 400, {"error": {"message": "bad request"}}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-request-id", f"req-{text}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def chat():
    Handler.seen.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def request(custom_id, text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def test_openai_requests_are_repeated_and_answered_in_order(options, chat, tmp_path):
    requests = [request(f"r{at}", f"t{at}") for at in range(30)] + [request("r30", "bad")]
    lines = [json.dumps(each) for each in requests] + ['{"custom_id": "r31"}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    job = options("m", tmp_path / "x.jsonl", url=chat, repository="", max_errors="5")
    summary = run_batch(job)
    found = [
        json.loads(line)
        for line in (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()
    ]
    assert [each["custom_id"] for each in found] == [f"r{at}" for at in range(31)] + [None]
    assert found[7]["response"] == {
        "status_code": 200,
        "request_id": "req-t7",
        "body": {"path": "/v1/chat/completions", "echo": "t7"},
    }
    assert found[30]["response"]["status_code"] == 400
    assert found[31]["error"]["message"].startswith("invalid request: ")
    assert len({each["id"] for each in found}) == 32
    assert set(Handler.seen.values()) == {2}
    assert summary.errors == 2


def test_requests_of_the_protocol_reach_a_model_of_this_process(options, tmp_path):
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    line = {"custom_id": "a", "method": "POST", "url": "/v2/models/double/infer", "body": body}
    (tmp_path / "x.jsonl").write_text(json.dumps(line))
    run_batch(options("double", tmp_path / "x.jsonl"))
    (found,) = (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()
    outputs = json.loads(found)["response"]["body"]["outputs"]
    assert outputs[0]["data"] == [2.0, 4.0, 6.0, 8.0]


def test_a_lost_server_fails_the_job_and_no_row(source, options, repository, tmp_path, monkeypatch):
    config = {
        "repositories": [{"url": str(repository)}],
        "frontends": {"http": {"port": 0}, "grpc": False, "metrics": False},
        "control": {"mode": "explicit", "load": ["double"]},
    }
    from tritonpy_batch import targets

    with running_server(config) as running:
        job = options(
            "double", source(40), url=running.http, repository="", reconnect_s=0.0, retries=1
        )
        exchange = targets.RemoteTarget._exchange

        def lost(self, work):
            raise targets.ServerLost("connection refused")

        monkeypatch.setattr(targets.RemoteTarget, "_exchange", lost)
        with pytest.raises(JobFailed, match="the server is lost for 0 s: connection refused"):
            run_batch(job)
        assert not list((tmp_path / "out").glob("part-*"))
        monkeypatch.setattr(targets.RemoteTarget, "_exchange", exchange)
        assert run_batch(job).rows == 40
