"""Who answers the requests of a listener.

pyvoy calls from a thread of its own. What can be done there spares the event loop from being woken for a head whose body it would then wait for.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from tritonpy_frontend_envoy.embedded.loops import ANSWERED


class Application(ABC):
    """An ASGI application."""

    @abstractmethod
    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Begin a request on the event loop; return a coroutine, or ANSWERED: it needs no task."""

    def ask_ahead(self, scope: Any, receive: Any, send: Any) -> bool:
        """Begin a request in any thread, by asking for its body; return whether that was done: otherwise it begins on the event loop."""
        return False


class Applications:
    """The applications of the protocols. Envoy listens before the frontends have made theirs: until then requests wait."""

    def __init__(self) -> None:
        self._made: dict[str, Application] = {}
        self._news = asyncio.Condition()

    def get(self, protocol: str) -> Application | None:
        """Return the application of a protocol, None before there is one."""
        return self._made.get(protocol)

    async def set(self, protocol: str, application: Application) -> None:
        """Let requests of a protocol begin."""
        async with self._news:
            self._made[protocol] = application
            self._news.notify_all()

    async def wait_for(self, protocol: str) -> Application:
        """Return the application of a protocol when it is there."""
        async with self._news:
            await self._news.wait_for(lambda: protocol in self._made)
        return self._made[protocol]


class Switch:
    """The application that pyvoy calls, in any thread, for a listener where one protocol is spoken."""

    _asgi_single_callable = True  # pyvoy must not take it for an application of ASGI 2

    def __init__(self, applications: Applications, protocol: str) -> None:
        self._applications = applications
        self._protocol = protocol
        self._application: Application | None = None

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Hand a request to the application; return ANSWERED, or what begins it on the event loop."""
        application = self._application
        if application is not None and application.ask_ahead(scope, receive, send):
            return ANSWERED
        return partial(self._begin, scope, receive, send)

    def _begin(self, scope: Any, receive: Any, send: Any) -> Any:
        if self._application is not None:
            return self._application(scope, receive, send)
        self._application = self._applications.get(self._protocol)
        return self._later(scope, receive, send)

    async def _later(self, scope: Any, receive: Any, send: Any) -> None:
        application = await self._applications.wait_for(self._protocol)
        answering = application(scope, receive, send)
        if answering is not ANSWERED:
            await answering


class BothSwitch:
    """The application that pyvoy calls for a listener where both protocols are spoken: the content type says which."""

    _asgi_single_callable = True

    def __init__(self, http: Switch, grpc: Switch) -> None:
        self._http = http
        self._grpc = grpc

    def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> Any:
        """Hand a request to the application of its protocol."""
        for name, value in scope["headers"]:
            if name == b"content-type":
                chosen = self._grpc if value.startswith(b"application/grpc") else self._http
                return chosen(scope, receive, send)
        return self._http(scope, receive, send)
