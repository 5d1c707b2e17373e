"""TLS and Unix domain sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client
import tritonclient.grpc.aio
import trustme

from tritonpy import StartupError
from tritonpy.frontend import FrontendContext, TlsOptions
from tritonpy_frontend_grpc.options import GrpcOptions

from .fake_engine import FakeEngine, frontend_class, run, serving

AUTHORITY = trustme.CA()


class PemFiles:
    """Certificate, key and root certificate files as TLS options; `renew` replaces the first two."""

    def __init__(self, folder):
        self.folder = folder
        self.options = {
            name: str(folder / name) for name in ("certificate_file", "key_file", "client_ca_file")
        }
        AUTHORITY.cert_pem.write_to_path(folder / "client_ca_file")
        self.renew()

    def renew(self):
        made = AUTHORITY.issue_cert("localhost", "127.0.0.1")
        made.cert_chain_pems[0].write_to_path(self.folder / "certificate_file")
        made.private_key_pem.write_to_path(self.folder / "key_file")

    def tls(self, **options):
        return TlsOptions(**self.options, **options)

    def client(self, authority=None):
        """Write the certificate and key of a client, and return their paths."""
        made = (authority or AUTHORITY).issue_cert("client")
        made.cert_chain_pems[0].write_to_path(self.folder / "client.pem")
        made.private_key_pem.write_to_path(self.folder / "client.key")
        return str(self.folder / "client.pem"), str(self.folder / "client.key")


@pytest.fixture
def pem(tmp_path):
    return PemFiles(tmp_path)


def credentials(pem, client=None):
    root = (pem.folder / "client_ca_file").read_bytes()
    if client is None:
        return grpc.ssl_channel_credentials(root)
    certificate, key = (open_read(path) for path in client)
    return grpc.ssl_channel_credentials(root, key, certificate)


def open_read(path):
    with open(path, "rb") as file:
        return file.read()


def secure(frontend, pem, client=None):
    port = frontend.address().rpartition(":")[2]
    return grpc.aio.secure_channel(
        f"localhost:{port}", credentials(pem, client), [("grpc.use_local_subchannel_pool", 1)]
    )


async def live(channel):
    return await channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=20)


def serial(frontend, pem):
    """Return the serial number of the certificate on a new connection."""
    context = ssl.create_default_context(cafile=pem.options["client_ca_file"])
    context.set_alpn_protocols(["h2"])
    port = int(frontend.address().rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), 20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        assert stream.selected_alpn_protocol() == "h2"
        return stream.getpeercert()["serialNumber"]


def use(address, pem, pair):
    """Run an inference with tritonclient."""
    options = {"root_certificates": pem.options["client_ca_file"]}
    if pair:
        options |= {"certificate_chain": pair[0], "private_key": pair[1]}
    array = np.arange(100_000, dtype=np.float32)
    with client.InferenceServerClient(address, ssl=True, **options) as connection:
        tensor = client.InferInput("IN", [100_000], "FP32").set_data_from_numpy(array)
        np.testing.assert_array_equal(connection.infer("identity", [tensor]).as_numpy("IN"), array)


@pytest.mark.parametrize("mutual", [False, True])
def test_tritonclient_works_with_tls(pem, mutual):
    async def scenario():
        async with serving(FakeEngine(), tls=pem.tls(mutual=mutual)) as frontend:
            address = frontend.address().replace("127.0.0.1", "localhost")
            await asyncio.to_thread(use, address, pem, pem.client() if mutual else None)

    run(scenario)


def test_a_client_without_a_trusted_certificate_is_refused(pem):
    async def scenario():
        async with serving(FakeEngine(), tls=pem.tls(mutual=True)) as frontend:
            for pair in (None, pem.client(trustme.CA())):
                async with secure(frontend, pem, pair) as channel:
                    with pytest.raises(grpc.RpcError) as error:
                        await live(channel)
                    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            async with secure(frontend, pem, pem.client()) as channel:
                assert await live(channel)

    run(scenario)


def test_client_certificates_are_optional_without_mutual_tls(pem):
    async def scenario():
        async with (
            serving(FakeEngine(), tls=pem.tls()) as frontend,
            secure(frontend, pem) as channel,
        ):
            assert await live(channel)

    run(scenario)


def test_plain_text_is_refused_with_tls(pem):
    async def scenario():
        async with (
            serving(FakeEngine(), tls=pem.tls()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            with pytest.raises(grpc.RpcError) as error:
                await live(channel)
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE

    run(scenario)


def test_a_renewed_certificate_is_used_for_new_connections(pem):
    async def scenario():
        async with (
            serving(FakeEngine(), tls=pem.tls()) as frontend,
            secure(frontend, pem) as channel,
        ):
            assert await live(channel)
            before = await asyncio.to_thread(serial, frontend, pem)
            pem.renew()
            after = await asyncio.to_thread(serial, frontend, pem)
            assert before != after
            # for every server that shares the port
            assert {await asyncio.to_thread(serial, frontend, pem) for _ in range(30)} == {after}
            assert await live(channel)

    run(scenario)


def test_mismatched_tls_files_are_not_used(pem, caplog):
    async def scenario():
        async with serving(FakeEngine(), tls=pem.tls()) as frontend:
            before = await asyncio.to_thread(serial, frontend, pem)
            (pem.folder / "key_file").write_text("half")
            assert await asyncio.to_thread(serial, frontend, pem) == before
            assert "changed TLS files are not used: frontends.grpc.tls.key_file" in caplog.text
            pem.renew()
            assert await asyncio.to_thread(serial, frontend, pem) != before

    run(scenario)


@pytest.mark.parametrize("name", ["certificate_file", "key_file", "client_ca_file"])
def test_an_invalid_tls_file_is_named_at_startup(pem, name):
    os.unlink(pem.options[name])

    async def scenario():
        with pytest.raises(
            StartupError,
            match=rf"frontends.grpc.tls.{name} '.*/{name}': cannot read the file: No such file",
        ):
            async with serving(FakeEngine(), tls=pem.tls(mutual=True)):
                pass

    run(scenario)


def test_incomplete_tls_options_are_rejected():
    with pytest.raises(ValueError, match=r"TLS needs tls\.key_file"):
        TlsOptions(certificate_file="a")


@contextlib.asynccontextmanager
async def on_socket(path, **options):
    frontend = frontend_class()(
        GrpcOptions(host=f"unix:{path}", **options),
        FrontendContext("127.0.0.1", logging.getLogger()),
    )
    try:
        await frontend.start(FakeEngine())
        yield frontend
    finally:
        await frontend.stop()


def test_a_unix_socket_is_served_and_removed_at_shutdown(tmp_path):
    path = tmp_path / "grpc.sock"

    async def scenario():
        async with on_socket(path, socket_mode="0600") as frontend:
            assert frontend.address() == f"unix:{path}"
            assert path.stat().st_mode & 0o777 == 0o600
            async with tritonclient.grpc.aio.InferenceServerClient(
                frontend.address()
            ) as connection:
                tensor = client.InferInput("IN", [1], "INT32").set_data_from_numpy(
                    np.array([7], np.int32)
                )
                assert (await connection.infer("identity", [tensor])).as_numpy("IN") == [7]
        assert not path.exists()

    run(scenario)


def test_a_unix_socket_may_be_encrypted(tmp_path, pem):
    async def scenario():
        async with on_socket(tmp_path / "grpc.sock", tls=pem.tls()) as frontend:
            options = [("grpc.ssl_target_name_override", "localhost")]
            async with grpc.aio.secure_channel(
                frontend.address(), credentials(pem), options
            ) as channel:
                assert await live(channel)

    run(scenario)


def test_a_unix_socket_in_use_is_refused(tmp_path):
    async def scenario():
        async with on_socket(tmp_path / "grpc.sock") as frontend:
            with pytest.raises(StartupError, match="another server listens there"):
                async with on_socket(tmp_path / "grpc.sock"):
                    pass
            async with grpc.aio.insecure_channel(frontend.address()) as channel:
                assert await live(channel)

    run(scenario)


def test_the_socket_of_a_dead_server_is_replaced(tmp_path):
    path = tmp_path / "grpc.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    async def scenario():
        async with (
            on_socket(path) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            assert await live(channel)

    run(scenario)


def test_a_unix_socket_in_a_missing_folder_is_reported(tmp_path, capfd):
    async def scenario():
        with pytest.raises(
            StartupError, match=r"cannot listen on unix:.*: No such file or directory"
        ):
            async with on_socket(tmp_path / "nowhere" / "grpc.sock"):
                pass

    run(scenario)
    assert capfd.readouterr().err == ""
