"""Real Envoys on free ports, each gone at the end of its test."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
import trustme

from .serving import LISTENS, Models, Served, end


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path / "models")


@pytest.fixture
def start(tmp_path):
    """`start("--flag=value", …)`: a server that is ready, or, with `ready=False`, on its way."""
    with contextlib.ExitStack() as stack:
        numbers = iter(range(100))

        def run(*flags, ready=True, ports=True):
            free = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"] if ports else []
            output = tmp_path / f"log-{next(numbers)}"
            with output.open("wb") as file:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tritonpy", "serve", "--transport=envoy", *free, *flags],
                    stdout=file, stderr=file, start_new_session=True, cwd=tmp_path,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )  # fmt: skip
            served = Served(process, output)
            stack.callback(end, served)
            if ready:
                served.until_logged("ready: ")
                served.ports.update((name, int(port)) for name, port in LISTENS.findall(served.log))
            return served

        yield run


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with a server's and a client's certificate and key, and the certificate that vouches for both."""
    folder, authority = tmp_path_factory.mktemp("pem"), trustme.CA()
    authority.cert_pem.write_to_path(folder / "root.pem")
    for name, made in (
        ("server", authority.issue_cert("localhost", "127.0.0.1")),
        ("client", authority.issue_cert("me")),
    ):
        made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        made.private_key_pem.write_to_path(folder / f"{name}.key")
    return folder
