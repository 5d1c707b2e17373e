from __future__ import annotations

import asyncio
import http.client
import logging

import pytest

from tritonpy import PermissionDenied, Unauthenticated
from tritonpy.auth import Principal, Verb
from tritonpy.frontend import FrontendContext
from tritonpy_metrics_prometheus.frontend import MetricsFrontend
from tritonpy_metrics_prometheus.options import MetricsOptions


class Authorizer:
    """Knows `anna`, who may read, and `bert`, who may not."""

    def __init__(self, is_open=False):
        self.is_open = is_open

    def guards(self, door):
        return not (door == "metrics" and self.is_open)

    def admit(self, headers, verb, model=""):
        assert (verb, model) == (Verb.READ, "")
        name = headers.get("x-api-key")
        if name not in ("anna", "bert"):
            raise Unauthenticated("who")
        if name == "bert":
            raise PermissionDenied("no")
        return Principal(name)


def scraped(engine, authorizer, *headers):
    def scrape(address):
        connection = http.client.HTTPConnection(address, timeout=20)
        connection.putrequest("GET", "/metrics")
        for header in headers:
            connection.putheader(*header)
        connection.endheaders()
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status, response.getheader("www-authenticate")

    async def scenario():
        context = FrontendContext("127.0.0.1", logging.getLogger("test"), authorizer)
        frontend = MetricsFrontend(MetricsOptions(port=0, cpu=False), context)
        await frontend.start(engine)
        try:
            return await asyncio.to_thread(scrape, frontend.address())
        finally:
            await frontend.stop()

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("X-API-Key", "nobody")], 401),
        ([("X-API-Key", "bert")], 403),
        ([("X-API-Key", "anna")], 200),
        ([("X-API-Key", "anna"), ("x-api-key", "anna")], 401),
    ],
)
def test_metrics_need_the_read_right(engine, headers, status):
    assert scraped(engine, Authorizer(), *headers) == (
        status,
        'Bearer realm="tritonpy"' if status == 401 else None,
    )


def test_metrics_may_be_public(engine):
    assert scraped(engine, Authorizer(is_open=True))[0] == 200
    assert scraped(engine, None)[0] == 200
