from __future__ import annotations

import socket

import pytest

from tritonpy.testing import free_port, ports


def test_a_port_can_be_listened_on_and_is_none_that_the_system_gives_away():
    port = free_port()
    assert port < int(ports.RANGE.read_text().split()[0])
    socket.create_server(("127.0.0.1", port)).close()


def test_a_port_that_somebody_listens_on_is_not_returned(monkeypatch):
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        tried = iter([taken.getsockname()[1], taken.getsockname()[1], free_port()])
        monkeypatch.setattr(ports.random, "SystemRandom", lambda: _Told(tried))
        assert free_port() != taken.getsockname()[1]
        assert next(tried, None) is None


@pytest.mark.parametrize("text", ["", "none", "1024 60999"])
def test_it_finds_one_whatever_the_system_says_of_its_own(monkeypatch, tmp_path, text):
    monkeypatch.setattr(ports, "RANGE", tmp_path / "range")
    (tmp_path / "range").write_text(text)
    assert free_port() >= 10_000


class _Told:
    """A generator of what it is told."""

    def __init__(self, numbers):
        self._numbers = numbers

    def randrange(self, _start, _end):
        return next(self._numbers)
