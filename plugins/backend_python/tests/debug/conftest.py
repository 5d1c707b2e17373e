from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def own_logging():
    """The command sets up the logging of its process, which here is that of all tests."""
    loggers = [logging.getLogger(name) for name in ("", "tritonpy", "tritonpy.model", "tritonpy.repository")]
    levels, handlers = [each.level for each in loggers], list(logging.getLogger().handlers)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    logging.getLogger().handlers[:] = handlers
