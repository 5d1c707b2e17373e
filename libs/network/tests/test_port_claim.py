from __future__ import annotations

import socket
from contextlib import ExitStack, closing

import pytest

from tritonpy_network.port_claim import claim_port


def listen(port: int, *, reuse: bool) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def test_only_the_claiming_server_s_processes_may_listen() -> None:
    claimed = claim_port("127.0.0.1", 0, reuse=False)
    with ExitStack() as stack:
        stack.callback(claimed.close)
        port = claimed.claim.port
        assert claimed.claim.address == f"127.0.0.1:{port}"
        for _ in range(2):
            stack.enter_context(closing(listen(port, reuse=True)))
        with pytest.raises(OSError, match="in use"):
            listen(port, reuse=False)
        with pytest.raises(OSError, match="in use"):
            claim_port("127.0.0.1", port, reuse=False)
        claim_port("127.0.0.1", port, reuse=True).close()


def test_a_claim_accepts_no_connections() -> None:
    claimed = claim_port("127.0.0.1", 0, reuse=False)
    with ExitStack() as stack:
        stack.callback(claimed.close)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", claimed.claim.port)).close()
        listening = stack.enter_context(closing(listen(claimed.claim.port, reuse=True)))
        for _ in range(8):  # all of them reach the listening socket
            stack.enter_context(socket.create_connection(("127.0.0.1", claimed.claim.port)))
            stack.enter_context(listening.accept()[0])


def test_old_connections_do_not_block_a_port() -> None:
    with closing(listen(0, reuse=False)) as listening:
        port = listening.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served = listening.accept()[0]
        served.close()  # the side that closes first enters TIME_WAIT
        client.recv(1)
        client.close()
    claim_port("127.0.0.1", port, reuse=False).close()


def test_a_used_port_and_a_foreign_address_are_os_errors() -> None:
    with closing(listen(0, reuse=False)) as listening, pytest.raises(OSError, match="in use"):
        claim_port("127.0.0.1", listening.getsockname()[1], reuse=False)
    with pytest.raises(OSError, match=r"\S"):
        claim_port("203.0.113.7", 0, reuse=False)
