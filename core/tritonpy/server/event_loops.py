"""The event loop of the server's processes."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of event loops: uvloop's if it is installed."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module(
            "uvloop"
        ).new_event_loop
    except ImportError:
        return asyncio.new_event_loop
    return factory
