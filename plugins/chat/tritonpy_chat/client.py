"""A client of OpenAI's chat API: one connection per request, responses as they arrive."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Generator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tritonpy import StartupError

_TIMEOUT_S = 600.0  # a model may need minutes for a long prompt
_DONE = b"[DONE]"


class ChatFailed(Exception):
    """The server refused a chat or ended it; the text is the server's."""


class ChatClient:
    """Chats with the server at `url`, such as `http://localhost:9000`. Raises StartupError."""

    def __init__(self, url: str, api_key: str = "") -> None:
        given = urlsplit(url if "//" in url else f"http://{url}")
        if given.scheme not in {"http", "https"} or not given.hostname:
            raise StartupError(f"'{url}' is no address of a server, such as http://localhost:9000")
        self._host, self._port = given.hostname, given.port
        self._is_encrypted = given.scheme == "https"
        self._path = given.path.rstrip("/").removesuffix("/v1")
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._running: http.client.HTTPConnection | None = None

    def models(self) -> list[str]:
        """Return the names of the models. Raises ChatFailed, and OSError without a server."""
        connection = self._connection()
        try:
            response = self._answer(connection, "GET", "/v1/models", None)
            return [each["id"] for each in json.loads(response.read())["data"]]
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Return whether the server can be reached and is ready."""
        connection = self._connection()
        try:
            self._answer(connection, "GET", "/health/ready", None).read()
        except (OSError, ChatFailed):
            return False
        finally:
            connection.close()
        return True

    def chat(
        self, model: str, messages: Sequence[Mapping[str, str]], **members: Any
    ) -> Generator[Mapping[str, Any], None, None]:
        """Yield the chunks of a response. Close the iterator to cancel it.

        `members` are further ones of the request, such as `temperature`. Raises ChatFailed.
        """
        body = {
            "model": model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            **members,
        }
        connection = self._connection()
        try:
            response = self._answer(connection, "POST", "/v1/chat/completions", body)
            for line in response:
                data = line.strip().removeprefix(b"data: ")
                if data == _DONE:
                    return
                if line.startswith(b"data: "):
                    chunk = json.loads(data)
                    if "error" in chunk:
                        raise ChatFailed(chunk["error"]["message"])
                    yield chunk
            raise ChatFailed("the server ended the response early")
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_encrypted:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=_TIMEOUT_S, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)

    def _answer(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, self._path + path, data, self._headers)
            response = connection.getresponse()
        except http.client.HTTPException as error:
            raise ChatFailed(f"the server does not speak HTTP: {error!r}") from error
        if response.status != http.HTTPStatus.OK:
            raise ChatFailed(_error_text(response))
        return response


def _error_text(response: http.client.HTTPResponse) -> str:
    data = response.read()
    try:
        document = json.loads(data)
        error = document.get("error")
        text = error["message"] if isinstance(error, dict) else document.get("detail", error)
    except (ValueError, KeyError, AttributeError):
        text = data.decode("utf-8", "replace")[:200]
    return f"{text} (status {response.status})"
