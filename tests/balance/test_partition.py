"""A machine that vanishes from the network, as a network namespace with its cable cut."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.balance.conftest import backend_of, wait_for_servers, wait_until
from tests.balance.test_balance import Load

HERE, OTHER = "10.213.7.1", "10.213.7.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def machine() -> Iterator[str]:
    """The name of a network namespace with the address OTHER."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("needs root and the command ip: network namespaces")
    name = f"tritonpy{os.getpid()}"
    link = f"tp{os.getpid()}"
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("needs the right to make network namespaces")
    try:
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{HERE}/24", "dev", link)
        ip("link", "set", link, "up")
        for command in (
            ("addr", "add", f"{OTHER}/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):  # fmt: skip
            ip("-n", name, *command)
        yield name
    finally:
        ip("netns", "del", name)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_partition_loses_no_inference(
    cluster: Any, balance: Any, machine: str, protocol: str
) -> None:
    name = machine
    near = cluster.add()
    under = ("ip", "netns", "exec", name)
    path = cluster._models.path
    flags = (
        f"--model-repository={path}", f"--http-address={OTHER}", f"--grpc-address={OTHER}",
        "--http-port=8000", "--grpc-port=8001", "--metrics-port=0",
    )  # fmt: skip
    cluster._stack.enter_context(cluster._serve(*flags, under=under, ports=False))
    backends = (backend_of(near), f"{OTHER}:8000:8001")
    with balance(backends) as balancer:
        with Load(balancer.port, protocol) as load:
            wait_until(lambda: load.count > 300, "load", balancer)
            # the far end: without the near one, calls would take the default route
            ip("-n", name, "link", "set", "eth0", "down")
            cut = time.monotonic()
            seen = load.count
            wait_until(lambda: load.slowest_s > 0.5, "calls in flight wait", balancer)
            wait_until(lambda: load.count > seen + 300, "load without the machine", balancer)
            wait_for_servers(balancer, 1)
            print(f"all calls go to the other server {time.monotonic() - cut:.1f} s after the cut")
            ip("-n", name, "link", "set", "eth0", "up")
            wait_for_servers(balancer, 2)
            seen = load.count
            wait_until(lambda: load.count > seen + 300, "load with the machine", balancer)
        assert set(load.results) == {"ok"}, load.results
        print(f"the slowest call took {load.slowest_s:.1f} s")
