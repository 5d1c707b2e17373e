from __future__ import annotations

import ssl
from contextlib import contextmanager

import pytest
import trustme

from tritonpy.cli import main
from tritonpy_testing import ModelRepository, running_server
from tritonpy_testing.toy_http import http_response, kserve, toy_http

from .bench_models import BenchModels, write_models


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@contextmanager
def served(authority, tmp_path, mutual=False):
    """A toy server over TLS; the client's files are in tmp_path."""

    async def infer(body):
        return http_response()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    if mutual:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("me@example.org").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "client.pem"
    )
    with toy_http(kserve(infer), context) as toy:
        yield f"https://localhost:{toy.port}"


def bench(url, *more):
    return main(["bench", "m", "-u", url, "--request-count", "10", *more])


def test_the_flag_sets_the_trusted_certificates(authority, tmp_path, capsys):
    with served(authority, tmp_path) as url:
        assert bench(url, "--ssl-https-ca-certificates-file", str(tmp_path / "ca.pem")) == 0
        assert bench(url, "--ssl-https-verify-peer", "0") == 0
        capsys.readouterr()
        assert bench(url) == 1
        assert "certificate verify failed" in capsys.readouterr().err


def test_a_client_certificate_is_sent_to_a_server_that_requests_one(authority, tmp_path, capsys):
    trusted = ("--ssl-https-ca-certificates-file", str(tmp_path / "ca.pem"))
    own = str(tmp_path / "client.pem")
    with served(authority, tmp_path, mutual=True) as url:
        assert (
            bench(
                url,
                *trusted,
                "--ssl-https-client-certificate-file",
                own,
                "--ssl-https-private-key-file",
                own,
            )
            == 0
        )
        assert bench(url, *trusted) == 1


def test_missing_certificate_files_are_usage_errors(capsys):
    assert bench("https://localhost:1", "--ssl-https-ca-certificates-file", "/no/such.pem") == 2
    assert "--ssl-https-… cannot be used" in capsys.readouterr().err
    grpc = (
        "-i",
        "grpc",
        "--ssl-grpc-use-ssl",
        "--ssl-grpc-root-certifications-file",
        "/no/such.pem",
    )
    assert bench("localhost:1", *grpc) == 2
    assert "--ssl-grpc-… cannot be used" in capsys.readouterr().err


def test_grpc_supports_tls(authority, tmp_path):
    server_pem, trusted = tmp_path / "server.pem", tmp_path / "ca.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(server_pem)
    authority.cert_pem.write_to_path(trusted)
    repository = ModelRepository(tmp_path / "models")
    write_models(repository)
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {
            "grpc": {"port": 0, "tls": {"certificate_file": str(server_pem), "key_file": str(server_pem)}},
            "http": False, "metrics": False,
        },
    }  # fmt: skip
    with running_server(config, [BenchModels()]) as server:
        url = server.grpc.replace("127.0.0.1", "localhost")
        flags = ("--ssl-grpc-use-ssl", "true", "--ssl-grpc-root-certifications-file", str(trusted))
        assert (
            main(["bench", "sums", "-u", url, "-i", "grpc", "--request-count", "10", *flags]) == 0
        )
