"""OpenAI's client against a server: streams, routes, keys, frontend processes, Ctrl-C under load."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.conftest import Serve, ServerProcess

HELLO: Any = [{"role": "user", "content": "how are you"}]
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            [prompt] = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
            words = prompt.decode().split()
            count = 0
            while count < len(words) or "forever" in words:
                if request.is_cancelled():
                    pb_utils.Logger.log_info("a request was cancelled")
                    break
                text = np.array([(words[count % len(words)] + " ").encode()], np.object_)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("text_output", text)]))
                count += 1
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input { name: "text_input" data_type: TYPE_STRING dims: 1 }
output { name: "text_output" data_type: TYPE_STRING dims: 1 }
"""
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model `echo`, which repeats its prompt, with a chat template in its folder."""
    version = tmp_path_factory.mktemp("openai") / "models" / "echo" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(MODEL)
    (version / "chat_template.jinja").write_text(TEMPLATE)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    return version.parent.parent


@contextlib.contextmanager
def client_of(served: ServerProcess, key: str = "none") -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{served.ports['openai']}/v1"
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=60) as client:
        yield client


def answer_of(client: openai.OpenAI, model: str = "echo") -> str:
    done = client.chat.completions.create(model=model, messages=HELLO)
    return done.choices[0].message.content or ""


def parts_of(client: openai.OpenAI, model: str = "echo") -> list[str]:
    with client.chat.completions.create(model=model, messages=HELLO, stream=True) as stream:
        return [text for each in stream if (text := each.choices[0].delta.content)]


@pytest.mark.parametrize("processes", [0, 2])
def test_chats_and_streams(serve: Serve, repository: Path, processes: int) -> None:
    flags = (
        f"--model-repository={repository}",
        "--openai-port=0",
        f"--frontend-processes={processes}",
    )
    with serve(*flags) as served, client_of(served) as client:
        assert [each.id for each in client.models.list()] == ["echo"]
        for _ in range(4):  # connections go to different processes
            assert answer_of(client) == "how are you "
            assert parts_of(client) == ["how ", "are ", "you "]
        with pytest.raises(openai.NotFoundError):
            answer_of(client, "nothing")
        connection = http.client.HTTPConnection("127.0.0.1", served.ports["openai"], timeout=60)
        body = {"model": "echo", "messages": [{"role": "user", "content": "forever"}],
                "stream": True}  # fmt: skip
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with contextlib.closing(connection.getresponse()) as response:
                assert b"forever" in response.read(4096)
        served.wait_until_logged("a request was cancelled")
        assert answer_of(client) == "how are you "


def test_the_api_is_served_on_the_port_of_the_http_frontend(serve: Serve, repository: Path) -> None:
    flags = (f"--model-repository={repository}", "--openai-mount=true")
    with serve(*flags) as served:
        assert "openai listens on the port of the HTTP frontend" in served.log
        served.ports["openai"] = served.ports["http"]
        with client_of(served) as client:
            assert answer_of(client) == "how are you "
            assert parts_of(client) == ["how ", "are ", "you "]
            assert client.responses.create(model="echo", input="good day").output_text
        assert served.request("/v2/models/echo").json()["name"] == "echo"
        assert served.request("/v2/health/ready").status == 200
        assert served.request("/v1/nothing").json()["error"]["message"] == "Not Found"
        assert "error" in served.request("/nothing").json()
        body = {"model": "echo", "messages": [{"role": "user", "content": "forever"}],
                "stream": True}  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with contextlib.closing(connection.getresponse()) as response:
                assert b"forever" in response.read(4096)
        served.wait_until_logged("a request was cancelled")


def test_a_mounted_api_needs_the_http_frontend_in_one_process(
    serve: Serve, repository: Path
) -> None:
    flags = (f"--model-repository={repository}", "--openai-mount=true")
    with serve(*flags, "--allow-http=false") as served:
        served.wait_until_logged("mount has no effect without the HTTP frontend")
    with serve(*flags, "--frontend-processes=2", until=None) as refused:
        assert refused.wait_until_exit() != 0
        assert "cannot be used with several frontend processes" in refused.log


def test_routes_and_keys(serve: Serve, repository: Path, tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tritonpy", "api-key", "new", "--name", "ann", "--infer", "best"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (tmp_path / "keys.toml").write_text(made.stdout)
    key = next(word for word in (made.stdout + made.stderr).split() if word.startswith("tpy_"))
    config = {
        "repositories": [{"url": str(repository)}],
        "auth": {"api_keys": {"file": str(tmp_path / "keys.toml")}},
        "routers": {"traffic": {"routes": {"best": {"targets": [{"model": "echo"}]}}}},
        "frontends": {each: {"port": 0} for each in ("http", "grpc", "metrics", "openai")},
    }
    (tmp_path / "server.yaml").write_text(json.dumps(config))
    with serve(f"--config={tmp_path / 'server.yaml'}", ports=False) as served:
        with client_of(served, key) as client:
            assert answer_of(client, "best") == "how are you "
            with pytest.raises(openai.PermissionDeniedError):
                answer_of(client, "echo")
        with client_of(served, "wrong") as client, pytest.raises(openai.AuthenticationError):
            answer_of(client, "best")


def test_streams_end_before_the_server(serve: Serve, repository: Path) -> None:
    flags = (f"--model-repository={repository}", "--openai-port=0", "--exit-timeout-secs=30")
    with serve(*flags) as served, client_of(served) as client:
        failures: list[BaseException] = []
        stopping = threading.Event()

        def work() -> None:
            try:
                while not stopping.is_set():
                    assert parts_of(client) == ["how ", "are ", "you "]
            except openai.APIStatusError as error:
                if error.status_code != 503:
                    failures.append(error)
            except openai.APIConnectionError:
                pass  # the server has closed its port
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        served.process.send_signal(signal.SIGTERM)
        assert served.wait_until_exit() == 0
        stopping.set()
        for thread in threads:
            thread.join()
        assert failures == []
