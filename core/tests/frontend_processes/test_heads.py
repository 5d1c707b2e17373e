from __future__ import annotations

import pytest

from tritonpy.frontend_processes.heads import KnownHeads, WrittenHeads
from tritonpy.ipc import ProtocolError


def test_a_head_is_announced_once() -> None:
    written, known = WrittenHeads(), KnownHeads()
    written.begin()
    number = written.number("m", -1)
    assert written.number("m", -1) == number
    assert written.number("m", 2) != number
    known.learn(written.news())
    written.announced()
    assert known.get(number) == ("m", -1)
    assert written.number("m", -1) == number
    assert written.news() == {}


def test_what_was_not_sent_is_announced_again() -> None:
    written = WrittenHeads()
    written.begin()
    written.number("m", 1)
    assert written.news() == written.news() != {}


def test_names_that_never_repeat_fill_no_memory() -> None:
    written, known = WrittenHeads(), KnownHeads()
    for count in range(10_000):
        written.begin()
        number = written.number(f"m{count}", -1)
        known.learn(written.news())
        written.announced()
        assert known.get(number) == (f"m{count}", -1)
    assert len(written._numbers) <= 4096
    assert len(known._heads) <= 4096


def test_a_number_that_was_not_announced_is_a_broken_protocol() -> None:
    with pytest.raises(ProtocolError, match="never announced"):
        KnownHeads().get(3)
    with pytest.raises(ProtocolError, match="broken"):
        KnownHeads().learn({"heads": [[1]]})
