from __future__ import annotations

import logging
from typing import Any

import pytest

from tritonpy_engine_rpc.remote_logs import ServerHandler, send_log_to
from tritonpy_ipc.channel import ChannelClosed


class Bench:
    """A logger whose records are sent."""

    def __init__(self) -> None:
        self.reported: list[dict[str, Any]] = []
        self.broken: Exception | None = None
        self.log = logging.getLogger("tritonpy.test_logs")
        self.log.propagate = False
        self.log.handlers = [ServerHandler(self._notify)]

    def _notify(self, verb: str, **arguments: Any) -> None:
        assert verb == "log_record"
        if self.broken is not None:
            raise self.broken
        self.reported.append(arguments)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_record_is_sent_with_its_location_and_fields(bench: Bench) -> None:
    bench.log.warning("%d wheels", 3, extra={"model": "m", "request_id": "r", "table": "a\nb"})
    (payload,) = bench.reported
    assert (payload["logger"], payload["level"], payload["message"]) == (
        "tritonpy.test_logs",
        logging.WARNING,
        "3 wheels",
    )
    assert payload["file"] == __file__
    assert payload["line"] > 0
    assert (payload["fields"], payload["table"]) == ({"model": "m", "request_id": "r"}, "a\nb")


def test_a_traceback_is_sent_with_the_record(bench: Bench) -> None:
    bench.log.error("it failed", exc_info=ValueError("broken"))
    (payload,) = bench.reported
    assert payload["table"] == "ValueError: broken"


def test_without_a_server_records_go_to_standard_error(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.broken = ChannelClosed()
    bench.log.handlers = [ServerHandler(bench._notify)]
    bench.log.warning("from a child")
    assert capsys.readouterr().err == "from a child\n"


def test_a_record_that_cannot_be_sent_is_reported_on_standard_error(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.broken = TypeError("no JSON")
    bench.log.handlers = [ServerHandler(bench._notify)]
    bench.log.warning("strange")
    assert "TypeError: no JSON" in capsys.readouterr().err


def test_verbose_records_are_sent_regardless_of_the_initial_log_settings(bench: Bench) -> None:
    root, own = logging.getLogger(), logging.getLogger("tritonpy")
    handlers, level = list(root.handlers), own.level
    try:
        send_log_to(bench._notify)
        logging.getLogger("tritonpy.test_verbose").log(5, "very verbose")
    finally:
        root.handlers[:] = handlers
        own.setLevel(level)
    assert [(payload["level"], payload["message"]) for payload in bench.reported] == [
        (5, "very verbose")
    ]
