from __future__ import annotations

import socket
from contextlib import ExitStack, closing

import pytest

from tritonpy.listening.claimed_port import claim_port


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


def test_several_may_listen_on_a_claimed_port_and_a_stranger_may_not() -> None:
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


def test_it_takes_no_connection_itself() -> None:
    claimed = claim_port("127.0.0.1", 0, reuse=False)
    with ExitStack() as stack:
        stack.callback(claimed.close)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", claimed.claim.port)).close()
        listening = stack.enter_context(closing(listen(claimed.claim.port, reuse=True)))
        for _ in range(8):  # all of them come to whoever listens
            stack.enter_context(socket.create_connection(("127.0.0.1", claimed.claim.port)))
            stack.enter_context(listening.accept()[0])


def test_what_is_left_of_old_connections_is_no_obstacle() -> None:
    with closing(listen(0, reuse=False)) as listening:
        port = listening.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served = listening.accept()[0]
        served.close()  # who closes first waits for stray packets
        client.recv(1)
        client.close()
    claim_port("127.0.0.1", port, reuse=False).close()


def test_a_taken_port_and_a_strange_address_are_os_errors() -> None:
    with closing(listen(0, reuse=False)) as listening, pytest.raises(OSError, match="in use"):
        claim_port("127.0.0.1", listening.getsockname()[1], reuse=False)
    with pytest.raises(OSError, match=r"\S"):
        claim_port("203.0.113.7", 0, reuse=False)
