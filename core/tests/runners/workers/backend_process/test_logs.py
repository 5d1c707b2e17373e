from __future__ import annotations

import logging
from typing import Any

import pytest

from tritonpy.ipc.channel import ChannelClosed
from tritonpy.runners.workers.backend_process.logs import ServerHandler, send_log_to


class Bench:
    """A logger whose records are told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.broken: Exception | None = None
        self.log = logging.getLogger("tritonpy.test_logs")
        self.log.propagate = False
        self.log.handlers = [ServerHandler(self._tell)]

    def _tell(self, verb: str, **arguments: Any) -> None:
        assert verb == "log_record"
        if self.broken is not None:
            raise self.broken
        self.told.append(arguments)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_record_is_told_with_its_place_and_fields(bench: Bench) -> None:
    bench.log.warning("%d wheels", 3, extra={"model": "m", "request_id": "r", "table": "a\nb"})
    (said,) = bench.told
    assert (said["logger"], said["level"], said["message"]) == ("tritonpy.test_logs", logging.WARNING, "3 wheels")
    assert said["file"] == __file__
    assert said["line"] > 0
    assert (said["fields"], said["table"]) == ({"model": "m", "request_id": "r"}, "a\nb")


def test_a_traceback_goes_along(bench: Bench) -> None:
    bench.log.error("it failed", exc_info=ValueError("broken"))
    (said,) = bench.told
    assert said["table"] == "ValueError: broken"


def test_where_there_is_no_server_it_goes_to_standard_error(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.broken = ChannelClosed()
    bench.log.handlers = [ServerHandler(bench._tell)]
    bench.log.warning("from a child")
    assert capsys.readouterr().err == "from a child\n"


def test_a_record_that_cannot_be_told_harms_nobody(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.broken = TypeError("no JSON")
    bench.log.handlers = [ServerHandler(bench._tell)]
    bench.log.warning("strange")
    assert "TypeError: no JSON" in capsys.readouterr().err


def test_verbose_lines_are_told_whatever_the_server_kept_when_the_worker_started(bench: Bench) -> None:
    root, own = logging.getLogger(), logging.getLogger("tritonpy")
    handlers, level = list(root.handlers), own.level
    try:
        send_log_to(bench._tell)
        logging.getLogger("tritonpy.test_verbose").log(5, "very verbose")
    finally:
        root.handlers[:] = handlers
        own.setLevel(level)
    assert [(said["level"], said["message"]) for said in bench.told] == [(5, "very verbose")]
