from __future__ import annotations

import socket

import pytest

from tritonpy_testing import free_port, ports


def test_a_port_is_free_and_outside_the_ephemeral_range():
    port = free_port()
    assert port < int(ports.RANGE.read_text().split()[0])
    socket.create_server(("127.0.0.1", port)).close()


def test_a_used_port_is_not_returned(monkeypatch):
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        tried = iter([taken.getsockname()[1], taken.getsockname()[1], free_port()])
        monkeypatch.setattr(ports.random, "SystemRandom", lambda: _FixedNumbers(tried))
        assert free_port() != taken.getsockname()[1]
        assert next(tried, None) is None


@pytest.mark.parametrize("text", ["", "none", "1024 60999"])
def test_a_port_is_found_for_any_system_setting(monkeypatch, tmp_path, text):
    monkeypatch.setattr(ports, "RANGE", tmp_path / "range")
    (tmp_path / "range").write_text(text)
    assert free_port() >= 10_000


class _FixedNumbers:
    """A random generator that returns given numbers."""

    def __init__(self, numbers):
        self._numbers = numbers

    def randrange(self, _start, _end):
        return next(self._numbers)
