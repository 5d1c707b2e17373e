from __future__ import annotations

import asyncio
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http.client import HTTPConnection

import pytest

import tritonpy_metrics_prometheus
from tritonpy import StartupError
from tritonpy.execution import NoDevice
from tritonpy.frontend import FrontendContext
from tritonpy.metrics import MetricKind, ModelMetrics
from tritonpy_metrics_prometheus.cpu import PROC
from tritonpy_metrics_prometheus.frontend import MetricsFrontend
from tritonpy_metrics_prometheus.options import MetricsOptions
from tritonpy_testing import FrontendContract

from .fake_device import FakeDevice, FakeMonitor, h100


def has_ipv6():
    """Return whether this machine has the address ::1, which containers often lack."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


class TestContract(FrontendContract):
    plugin_class = MetricsFrontend
    plugin = tritonpy_metrics_prometheus
    name = "metrics"


@asynccontextmanager
async def listening(engine, gpus=None, **options):
    context = FrontendContext("127.0.0.1", logging.getLogger("test"), gpus=gpus or NoDevice())
    frontend = MetricsFrontend(MetricsOptions(port=0, **options), context)
    await frontend.start(engine)
    try:
        yield frontend
    finally:
        await frontend.stop()


def scrape(address, method="GET", path="/metrics"):
    connection = HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_scrape_returns_current_values(engine):
    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            before = await asyncio.to_thread(scrape, frontend.address())
            engine.add()
            engine.numbers[0].inference_count = 7
            return before, await asyncio.to_thread(scrape, frontend.address())

    (status, before), (_, after) = asyncio.run(scenario())
    assert (status, before) == (200, "")
    assert 'nv_inference_count{model="addsub",version="1"} 7\n' in after
    assert "nv_cpu" not in after


def test_a_scrape_returns_custom_metrics(engine):
    ModelMetrics(engine.metrics).family("toys", "", MetricKind.COUNTER).metric(
        {"k": "v"}
    ).increment(3)

    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            return await asyncio.to_thread(scrape, frontend.address())

    assert asyncio.run(scenario()) == (200, '# TYPE toys counter\ntoys{k="v"} 3\n')


def test_concurrent_scrapes_all_succeed(engine):
    engine.add()

    async def scenario():
        async with listening(engine) as frontend:
            scrapes = [asyncio.to_thread(scrape, frontend.address()) for _ in range(20)]
            return await asyncio.gather(*scrapes)

    responses = asyncio.run(scenario())
    assert {status for status, _ in responses} == {200}
    assert all(
        'nv_inference_exec_count{model="addsub",version="1"} 2\n' in text for _, text in responses
    )


def test_the_event_loop_is_not_blocked_by_a_scrape(engine):
    executor, go_on = threading.Event(), threading.Event()

    def slow_gauges():
        executor.set()
        assert go_on.wait(60)
        return {}

    engine.gauges = slow_gauges

    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            waiting = asyncio.create_task(asyncio.to_thread(scrape, frontend.address()))
            await asyncio.to_thread(executor.wait, 60)
            missing = await asyncio.to_thread(scrape, frontend.address(), "GET", "/other")
            go_on.set()
            return missing, await waiting

    assert asyncio.run(scenario()) == ((404, '{"error":"Not Found"}'), (200, ""))


def test_a_scrape_does_not_wait_for_the_loop_s_busy_threads(engine):
    go_on = threading.Event()

    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            busy = [asyncio.to_thread(go_on.wait, 60) for _ in range(64)]
            waiting = asyncio.gather(*busy)
            with ThreadPoolExecutor(1) as own:
                response = await asyncio.get_running_loop().run_in_executor(
                    own, scrape, frontend.address()
                )
            go_on.set()
            await waiting
            return response

    assert asyncio.run(scenario()) == (200, "")


def test_head_has_the_length_of_the_metrics_and_no_body(engine):
    engine.add()

    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            address = frontend.address()
            responses = []
            for method in ("GET", "HEAD"):
                request = (
                    f"{method} /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
                )
                responses.append(await asyncio.to_thread(exchange, address, request))
            return responses

    get, head = asyncio.run(scenario())
    assert get.startswith(b"HTTP/1.1 200 ")
    assert b"nv_inference_count" in get
    assert without_date(head) == without_date(get[: get.index(b"\r\n\r\n") + 4])


def without_date(response):
    return [line for line in response.split(b"\r\n") if not line.lower().startswith(b"date:")]


def test_another_method_is_rejected_over_http(engine):
    async def scenario():
        async with listening(engine) as frontend:
            return await asyncio.to_thread(scrape, frontend.address(), "POST")

    assert asyncio.run(scenario()) == (405, '{"error":"Method Not Allowed"}')


@pytest.mark.skipif(not (PROC / "stat").exists(), reason="needs /proc")
def test_cpu_and_memory_of_the_machine_are_exported(engine):
    async def scenario():
        async with listening(engine) as frontend:
            return await asyncio.to_thread(scrape, frontend.address())

    _, text = asyncio.run(scenario())
    values = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
    assert list(values) == [
        "nv_cpu_utilization",
        "nv_cpu_memory_total_bytes",
        "nv_cpu_memory_used_bytes",
    ]
    assert 0 <= float(values["nv_cpu_utilization"]) <= 1
    assert 0 < int(values["nv_cpu_memory_used_bytes"]) <= int(values["nv_cpu_memory_total_bytes"])


def exported_gpus(engine, gpus, gpu):
    async def scenario():
        async with listening(engine, gpus, cpu=False, gpu=gpu) as frontend:
            return await asyncio.to_thread(scrape, frontend.address())

    return asyncio.run(scenario())[1].count("gpu_uuid=")


@pytest.mark.parametrize(("gpu", "samples"), [(True, 6), (False, 0)])
def test_gpus_are_exported_unless_disabled(engine, gpu, samples):
    monitor = FakeMonitor({"GPU-1": h100()})
    assert exported_gpus(engine, FakeDevice(monitor), gpu) == samples
    assert monitor.is_open is not gpu


def test_its_own_host_overrides_the_server_s(engine):
    async def scenario():
        async with listening(engine, host="127.0.0.2") as frontend:
            return frontend.address()

    assert asyncio.run(scenario()).startswith("127.0.0.2:")


def test_a_host_that_is_not_this_machine_s_is_named(engine):
    async def scenario():
        async with listening(engine, host="192.0.2.1"):
            pass

    text = r"cannot listen for metrics on 192\.0\.2\.1:0: Cannot assign requested address; choose another port"
    with pytest.raises(StartupError, match=text):
        asyncio.run(scenario())


@pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
def test_an_ipv6_address_is_bracketed(engine):
    async def scenario():
        async with listening(engine, host="::1") as frontend:
            return frontend.address(), await asyncio.to_thread(scrape, frontend.address())

    address, (status, _) = asyncio.run(scenario())
    assert address.startswith("[::1]:")
    assert status == 200


def exchange(address, sent):
    """Send bytes. Return what the server sends until it closes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(65536):
            received += part
    return received


@pytest.mark.parametrize(
    ("options", "sent", "status"),
    [
        ({"head_timeout_s": 0.1}, b"", b""),
        ({"head_timeout_s": 0.1}, b"GET /metrics HTTP/1.1\r\nhost:", b"HTTP/1.1 408 "),
        (
            {"body_timeout_s": 0.1},
            b"POST /other HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc",
            b"HTTP/1.1 404 ",
        ),
        ({"keep_alive_s": 0}, b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 200 "),
        (
            {"max_head_size": 100},
            b"GET /metrics HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 200,
            b"HTTP/1.1 431 ",
        ),
        (
            {"max_headers": 2},
            b"GET /metrics HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\n\r\n",
            b"HTTP/1.1 431 ",
        ),
    ],
)
def test_connections_have_the_limits_of_http(engine, options, sent, status):
    async def scenario():
        async with listening(engine, cpu=False, gpu=False, **options) as frontend:
            return await asyncio.to_thread(exchange, frontend.address(), sent)

    assert asyncio.run(scenario()).startswith(status)


def test_a_connection_above_the_limit_is_rejected(engine):
    async def scenario():
        async with listening(engine, cpu=False, gpu=False, max_connections=1) as frontend:
            host, _, port = frontend.address().rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            refused = await asyncio.to_thread(exchange, frontend.address(), b"")
            writer.close()
            return refused

    assert b"The server has too many connections" in asyncio.run(scenario())
