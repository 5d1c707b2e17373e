from __future__ import annotations

import asyncio

from tritonpy_frontend_envoy.embedded.loops import ANSWERED
from tritonpy_frontend_envoy.embedded.switch import Application, Applications, BothSwitch, Switch


class Asked(Application):
    """An application that notes its requests; where it is `quick` it needs no task, and it asks ahead for those that are `ahead`."""

    def __init__(self, quick=True):
        self.quick = quick
        self.scopes = []
        self.asked_ahead = []

    def ask_ahead(self, scope, receive, send):
        if "ahead" in scope:
            self.asked_ahead.append(scope)
        return "ahead" in scope

    def __call__(self, scope, receive, send):
        if self.quick:
            self.scopes.append(scope)
            return ANSWERED
        return self.later(scope)

    async def later(self, scope):
        self.scopes.append(scope)


def test_requests_wait_until_there_is_somebody_who_answers():
    async def run():
        applications, application = Applications(), Asked(quick=False)
        switch = Switch(applications, "http")
        early = asyncio.create_task(switch({"path": "/early"}, None, None)())
        await asyncio.sleep(0)
        assert application.scopes == []
        await applications.set("http", application)
        await early
        await switch({"path": "/late"}, None, None)()
        await switch({"path": "/later"}, None, None)()
        return [scope["path"] for scope in application.scopes]

    assert asyncio.run(run()) == ["/early", "/late", "/later"]


def test_one_that_needs_no_task_is_handed_through():
    async def run():
        applications, application = Applications(), Asked()
        await applications.set("grpc", application)
        switch = Switch(applications, "grpc")
        await switch({}, None, None)()
        begin = switch({}, None, None)
        return len(application.scopes), begin(), len(application.scopes)

    assert asyncio.run(run()) == (1, ANSWERED, 2)


def test_one_that_asks_ahead_does_not_begin_on_the_loop():
    async def run():
        applications, application = Applications(), Asked()
        await applications.set("grpc", application)
        switch = Switch(applications, "grpc")
        await switch({"ahead": 1}, None, None)()  # nobody is known yet who could be asked
        assert application.asked_ahead == []
        assert switch({"ahead": 2}, None, None) is ANSWERED
        return application.scopes, application.asked_ahead

    assert asyncio.run(run()) == ([{"ahead": 1}], [{"ahead": 2}])


def test_the_content_type_says_which_protocol_is_spoken():
    http, grpc = Asked(), Asked()
    both = BothSwitch(http, grpc)
    for headers in ([], [(b"content-type", b"application/json")], [(b"accept", b"application/grpc")]):
        both({"headers": headers}, None, None)
    assert (len(http.scopes), len(grpc.scopes)) == (3, 0)
    for kind in (b"application/grpc", b"application/grpc+proto"):
        both({"headers": [(b"host", b"x"), (b"content-type", kind)]}, None, None)
    assert (len(http.scopes), len(grpc.scopes)) == (3, 2)
