from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry

from tritonpy_metrics_prometheus.application import MetricsApplication


def request(path, method="GET"):
    sent = []

    async def send(message):
        sent.append(message)

    with ThreadPoolExecutor(1) as executor:
        application = MetricsApplication(CollectorRegistry(), executor)
        asyncio.run(application({"type": "http", "path": path, "method": method}, None, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


def test_metrics_are_plain_text():
    assert request("/metrics") == (
        200,
        {b"content-type": b"text/plain; charset=utf-8", b"content-length": b"0"},
        b"",
    )


def test_head_has_the_response_of_get():
    assert request("/metrics", "HEAD") == request("/metrics")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metric", "/v2"])
def test_other_paths_are_not_found(path):
    status, headers, body = request(path)
    assert (status, headers[b"content-type"], body) == (
        404,
        b"application/json",
        b'{"error":"Not Found"}',
    )


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_not_allowed(method):
    status, headers, body = request("/metrics", method)
    assert (status, headers[b"allow"], body) == (
        405,
        b"GET, HEAD",
        b'{"error":"Method Not Allowed"}',
    )
