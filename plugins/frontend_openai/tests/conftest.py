"""The real frontend on an event loop of a thread, in front of an engine with scripted models."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import openai
import pytest

from tritonpy import PermissionDenied, Unauthenticated
from tritonpy.auth import Principal
from tritonpy.config import decode_options
from tritonpy.frontend import FrontendContext, RequestMemory
from tritonpy.tracing import Tracer
from tritonpy_frontend_openai.frontend import OpenAiFrontend
from tritonpy_frontend_openai.options import OpenAiOptions

from .scripted_engine import WAIT_S, ScriptedEngine

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


class Reply:
    """A complete HTTP response."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def events(self) -> list[Any]:
        parts = self.body.decode().split("\n\n")
        assert parts.pop() == ""
        return [
            part[6:] if part == "data: [DONE]" else json.loads(part[6:])
            for part in parts
            if part.startswith("data: ")
        ]


class LiveFrontend:
    """The frontend with its port; `client` is OpenAI's own client."""

    def __init__(
        self,
        engine: ScriptedEngine,
        authorizer: Any = None,
        tracer: Tracer | None = None,
        **options: Any,
    ) -> None:
        raw = {"port": 0, "models": {"story": {"chat_template": TEMPLATE}}, **options}
        decoded = decode_options(OpenAiOptions, raw, "openai")  # may raise: before the thread
        self.engine = engine
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="openai-test-loop")
        self.thread.start()
        self.memory = RequestMemory()
        context = FrontendContext(
            "127.0.0.1",
            logging.getLogger("tritonpy.test.openai"),
            authorizer,
            tracer or Tracer(),
            memory=self.memory,
        )
        self.frontend = OpenAiFrontend(decoded, context)
        self.run(self.frontend.start(engine))
        self.port = int(self.frontend.address().rpartition(":")[2])
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="k", max_retries=0)

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers or {}))
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def chat(self, headers: Mapping[str, str] | None = None, **members: Any) -> Reply:
        body = {"model": "story", "messages": [{"role": "user", "content": "Hi"}], **members}
        return self.call("POST", "/v1/chat/completions", body, headers)

    def complete(self, headers: Mapping[str, str] | None = None, **members: Any) -> Reply:
        body = {"model": "story", "prompt": "Once", **members}
        return self.call("POST", "/v1/completions", body, headers)

    def close(self) -> None:
        self.client.close()
        self.run(self.frontend.stop())
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class KeyAuthorizer:
    """Knows keys of two people, who may use the model `story` only."""

    names: ClassVar = {"Bearer k": "anna", "Bearer b": "bert"}

    def __init__(self) -> None:
        self.checks = []

    def guards(self, endpoint):
        return False

    def identify(self, headers, verb, model=""):
        name = self.names.get(headers.get("authorization"))
        if name is None:
            raise Unauthenticated("credentials are missing or unknown")
        return Principal(name)

    def admit(self, headers, verb, model=""):
        principal = self.identify(headers, verb, model)
        self.checks.append((verb, model))
        if model not in {"story", ""}:
            raise PermissionDenied(f"no right to {verb.value} model '{model}'")
        return principal


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    with ScriptedEngine() as scripted:
        yield scripted


@pytest.fixture
def start(engine: ScriptedEngine) -> Iterator[Callable[..., LiveFrontend]]:
    started: list[LiveFrontend] = []

    def start_frontend(authorizer: Any = None, **options: Any) -> LiveFrontend:
        started.append(LiveFrontend(engine, authorizer, **options))
        return started[-1]

    yield start_frontend
    for live in started:
        live.close()


@pytest.fixture
def live(start: Callable[..., LiveFrontend]) -> LiveFrontend:
    return start()


@pytest.fixture
def authorizer():
    return KeyAuthorizer()


@pytest.fixture
def guarded(start, authorizer):
    return start(authorizer)
