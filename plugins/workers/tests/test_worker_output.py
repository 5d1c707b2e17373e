from __future__ import annotations

import asyncio
import logging
import os
from contextlib import contextmanager, suppress

import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop
from tritonpy_workers.worker_output import TAIL, WorkerOutput


@contextmanager
def printing(caplog):
    """Yield an output and the descriptor to which a worker writes."""
    caplog.set_level(logging.INFO, "tritonpy.worker")
    read, write = os.pipe()
    log = logging.LoggerAdapter(logging.getLogger("tritonpy.worker"), {})
    output = WorkerOutput(asyncio.get_running_loop(), read, log)
    try:
        yield output, write
    finally:
        output.close()
        os.close(write)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(read)


def lines(caplog):
    return [record.message for record in caplog.records if record.name == "tritonpy.worker"]


@on_loop
async def _spoken(caplog, pieces, expected):
    with printing(caplog) as (_, write):
        for piece in pieces:
            os.write(write, piece)
        await eventually(lambda: lines(caplog) == expected)


def test_lines_are_logged_whole_for_any_split(caplog):
    _spoken(caplog, [b"one\ntw", b"o\r\n", b"\n   \nth", b"ree\n"], ["one", "two", "three"])


def test_bytes_that_are_not_text_are_escaped(caplog):
    _spoken(caplog, [b"caf\xe9 \xe2\x82\xac\n"], ["caf\\xe9 \u20ac"])


@on_loop
async def test_an_unterminated_line_is_logged_at_the_end(caplog):
    with printing(caplog) as (output, write):
        os.write(write, b"first\nSegmentation fault")
        output.close()
        assert lines(caplog) == ["first", "Segmentation fault"]
        assert list(output.tail) == ["first", "Segmentation fault"]
        output.close()
        assert len(lines(caplog)) == 2


@on_loop
async def test_the_last_lines_are_kept(caplog):
    with printing(caplog) as (output, write):
        os.write(write, b"".join(b"%d\n" % number for number in range(TAIL + 5)))
        output.close()
        assert list(output.tail) == [str(number) for number in range(5, TAIL + 5)]


@on_loop
async def test_a_very_long_line_is_logged_in_pieces(caplog):
    with printing(caplog) as (output, write):
        os.set_blocking(write, False)
        written = 0

        def fill():
            nonlocal written
            with suppress(BlockingIOError):
                written += os.write(write, b"x" * 50_000)
            return written > 200_000

        await eventually(fill)
        output.close()
        assert len(lines(caplog)) > 1
        assert set("".join(lines(caplog))) == {"x"}


@on_loop
async def test_a_pipe_that_is_still_written_to_can_be_closed(caplog):
    caplog.set_level(logging.CRITICAL, "tritonpy.worker")
    read, write = os.pipe()
    log = logging.LoggerAdapter(logging.getLogger("tritonpy.worker"), {})
    output = WorkerOutput(asyncio.get_running_loop(), read, log)
    reads = 0

    def endless(_descriptor, size):
        nonlocal reads
        reads += 1
        assert reads < 1000, "it reads endlessly"
        return b"x" * size

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", endless)
        output.close()
    assert reads > 1
    os.close(write)


@on_loop
async def test_the_end_of_the_worker_closes_the_pipe():
    read, write = os.pipe()
    log = logging.LoggerAdapter(logging.getLogger("tritonpy.worker"), {})
    output = WorkerOutput(asyncio.get_running_loop(), read, log)
    os.close(write)
    await eventually(lambda: not _is_open(read))
    output.close()


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
