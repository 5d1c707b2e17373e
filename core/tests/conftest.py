from __future__ import annotations

import logging
import sys
import threading

import pytest

from tritonpy.logs import ServerLogHandler


@pytest.fixture
def own_logging(monkeypatch):
    """Whatever the test makes of the logging of this process, the next one finds it as it was."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    root, logger = logging.getLogger(), logging.getLogger("tritonpy")
    level = logger.level
    yield
    for handler in [each for each in root.handlers if isinstance(each, ServerLogHandler)]:
        root.removeHandler(handler)
        handler.close()
    logger.setLevel(level)
