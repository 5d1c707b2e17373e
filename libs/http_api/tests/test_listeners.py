"""TLS and Unix domain sockets."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys

import pytest
import trustme

from tritonpy import StartupError
from tritonpy.frontend import HttpTlsOptions
from tritonpy_http1 import HttpConnection

from .raw_http import BODY, META, SECONDS, RawConnection, chunked, eventually, read_one, request


def secure(server, context):
    stream = socket.create_connection(("127.0.0.1", server.port), SECONDS)
    return RawConnection(context.wrap_socket(stream, server_hostname="localhost"))


def local(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(SECONDS)
    stream.connect(str(path))
    return RawConnection(stream)


def tls(pem, **options):
    given = {
        "certificate_file": pem.options["certificate_file"],
        "key_file": pem.options["key_file"],
    }
    return HttpTlsOptions(**given, **options)


def test_requests_are_served_with_tls_and_keep_alive(start_server, pem, engine):
    server = start_server(tls=tls(pem))
    with secure(server, pem.context()) as stream:
        assert stream.version() == "TLSv1.3"
        for _ in range(3):
            stream.sendall(request() + META)
            assert json.loads(read_one(stream)[2])["model_name"] == "echo"
            assert json.loads(read_one(stream)[2])["name"] == "triton"
        stream.sendall(
            request(chunked(BODY[:9], BODY[9:]), "transfer-encoding: chunked\r\n", length=False)
        )
        assert read_one(stream)[0] == 200


def test_inference_uses_the_fast_path_with_tls(start_server, pem, monkeypatch):
    server = start_server(tls=tls(pem))
    parsed = []
    parse = HttpConnection.data_received

    def recorded(self, data):
        parsed.append(data)
        parse(self, data)

    monkeypatch.setattr(HttpConnection, "data_received", recorded)
    with secure(server, pem.context()) as stream:
        for _ in range(3):
            stream.sendall(request())
            assert read_one(stream)[0] == 200
    assert parsed == [request()]  # the others have a head that is known


def test_a_request_may_span_tls_records(start_server, pem):
    with secure(start_server(tls=tls(pem)), pem.context()) as stream:
        for byte in request():
            stream.sendall(bytes([byte]))
        assert read_one(stream)[0] == 200


def test_invalid_requests_are_refused_with_tls(start_server, pem):
    with secure(start_server(tls=tls(pem)), pem.context()) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        assert read_one(stream)[0] == 400
        assert stream.file.read() == b""


def test_plain_text_is_refused_with_tls(start_server, pem):
    server = start_server(tls=tls(pem))
    with RawConnection(socket.create_connection(("127.0.0.1", server.port), SECONDS)) as stream:
        stream.sendall(META)
        try:
            received = stream.recv(1000)
        except ConnectionError:
            received = b""
    assert b"HTTP" not in received
    with secure(server, pem.context()) as stream:
        stream.sendall(META)
        assert read_one(stream)[0] == 200


def test_the_minimum_tls_version_is_configurable(start_server, pem):
    server = start_server(tls=tls(pem, minimum_version="TLSv1.3"))
    context = pem.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        secure(server, context)
    other = start_server(tls=tls(pem))
    with secure(other, context) as stream:
        assert stream.version() == "TLSv1.2"


def test_a_client_without_a_trusted_certificate_is_refused(start_server, pem, authority, engine):
    server = start_server(tls=HttpTlsOptions(**pem.options, mutual=True))
    known = authority.issue_cert("client")
    unknown = trustme.CA().issue_cert("client")
    with secure(server, pem.context(known)) as stream:
        stream.sendall(request())
        assert read_one(stream)[0] == 200
    for certificate in (None, unknown):
        with (  # noqa: PT012
            pytest.raises((ssl.SSLError, ConnectionError)),
            secure(server, pem.context(certificate)) as stream,
        ):
            stream.sendall(
                request()
            )  # in TLS 1.3, the client receives the error with the first read
            assert stream.recv(1) == b""
            raise ConnectionError
    assert len(engine.requests) == 1


def test_a_renewed_certificate_is_used_for_new_connections(start_server, pem, authority):
    server = start_server(tls=tls(pem))
    with secure(server, pem.context()) as before:
        pem.renew(authority)
        with secure(server, pem.context()) as after:
            assert before.getpeercert()["serialNumber"] != after.getpeercert()["serialNumber"]
        before.sendall(META)
        assert read_one(before)[0] == 200


def test_mismatched_tls_files_are_not_used(start_server, pem, authority, caplog):
    server = start_server(tls=tls(pem))
    with secure(server, pem.context()) as before:
        shutil.copy(pem.options["certificate_file"], pem.folder / "old.pem")
        pem.renew(authority)
        shutil.copy(pem.options["certificate_file"], pem.folder / "renewed.pem")
        shutil.copy(pem.folder / "old.pem", pem.options["certificate_file"])
        with secure(server, pem.context()) as meanwhile:
            assert before.getpeercert() == meanwhile.getpeercert()
        assert "the key does not match" in caplog.text
        shutil.copy(pem.folder / "renewed.pem", pem.options["certificate_file"])
        with secure(server, pem.context()) as after:
            assert before.getpeercert() != after.getpeercert()


def test_a_renewed_client_ca_is_used(start_server, pem):
    server = start_server(tls=HttpTlsOptions(**pem.options, mutual=True))
    context = pem.context()
    other = trustme.CA()
    other.issue_cert("client").configure_cert(context)
    other.cert_pem.write_to_path(pem.options["client_ca_file"])
    with secure(server, context) as stream:
        stream.sendall(META)
        assert read_one(stream)[0] == 200


def test_an_invalid_tls_file_is_named_at_startup(start_server, pem):
    os.unlink(pem.options["key_file"])
    with pytest.raises(
        StartupError,
        match=r"frontends.http.tls.key_file '.*key.pem': cannot read the file: No such file",
    ):
        start_server(tls=tls(pem))


CLIENT = """
import sys
import numpy as np
import tritonclient.http as http
options = {"certfile": sys.argv[3], "keyfile": sys.argv[4]} if len(sys.argv) > 3 else {}
with http.InferenceServerClient(sys.argv[1], ssl=True, ssl_options={"ca_certs": sys.argv[2], **options}) as client:
    array = np.arange(100000, dtype=np.float32)
    given = http.InferInput("X", [100000], "FP32")
    given.set_data_from_numpy(array)
    for packing in (None, "gzip"):
        result = client.infer("echo", [given], request_compression_algorithm=packing, response_compression_algorithm=packing)
        np.testing.assert_array_equal(result.as_numpy("X"), array)
print("served")
"""


@pytest.mark.parametrize("mutual", [False, True])
def test_tritonclient_works_with_tls(start_server, pem, authority, mutual):
    server = start_server(tls=HttpTlsOptions(**pem.options, mutual=mutual))
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        CLIENT,
        f"localhost:{server.port}",
        pem.options["client_ca_file"],
    ]
    if mutual:
        client = authority.issue_cert("client")
        client.private_key_and_cert_chain_pem.write_to_path(pem.folder / "client.pem")
        command += [str(pem.folder / "client.pem")] * 2
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("served\n", "")


def test_a_unix_socket_is_served_and_removed_at_shutdown(start_server, tmp_path, engine):
    path = tmp_path / "http.sock"
    server = start_server(host=f"unix:{path}", socket_mode="0600")
    assert server.frontend.address() == f"unix:{path}"
    assert path.stat().st_mode & 0o777 == 0o600
    with local(path) as stream:
        for _ in range(2):
            stream.sendall(request() + META)
            assert json.loads(read_one(stream)[2])["model_name"] == "echo"
            assert json.loads(read_one(stream)[2])["name"] == "triton"
        stream.sendall(b"garbage\r\n\r\n")
        assert read_one(stream)[0] == 400
    server.run(server.frontend.stop())
    assert not path.exists()


def test_a_unix_socket_may_be_encrypted(start_server, tmp_path, pem):
    path = tmp_path / "http.sock"
    start_server(host=f"unix://{path}", tls=tls(pem))
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(path))
    with RawConnection(pem.context().wrap_socket(stream, server_hostname="localhost")) as raw:
        raw.sendall(request())
        assert read_one(raw)[0] == 200


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_works_with_a_unix_socket(start_server, tmp_path):
    path = tmp_path / "http.sock"
    start_server(host=f"unix:{path}")
    command = [
        "curl",
        "-s",
        "--unix-socket",
        str(path),
        "-d",
        BODY.decode(),
        "http://localhost/v2/models/echo/infer",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["model_name"] == "echo"


def test_a_unix_socket_in_use_is_refused(start_server, tmp_path):
    path = tmp_path / "http.sock"
    start_server(host=f"unix:{path}")
    with pytest.raises(StartupError, match="another server listens there"):
        start_server(host=f"unix:{path}")
    with local(path) as stream:
        stream.sendall(META)
        assert read_one(stream)[0] == 200


def test_disconnected_clients_of_a_unix_socket_are_removed(start_server, tmp_path):
    path = tmp_path / "http.sock"
    server = start_server(host=f"unix:{path}")
    with local(path) as stream:
        stream.sendall(request()[:-5])
    eventually(lambda: not server.frontend._server.server_state.connections, server)


def test_tls_works_without_a_server_name(start_server, pem, authority):
    server = start_server(tls=tls(pem))
    pem.renew(authority)
    context = pem.context()
    context.check_hostname = False
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=context, timeout=SECONDS
    )
    connection.request("GET", "/v2")
    assert connection.getresponse().status == 200
    connection.close()
