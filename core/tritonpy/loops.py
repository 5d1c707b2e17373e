"""The event loop of a process of ours."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes it: uvloop's where that is installed."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return asyncio.new_event_loop
    return factory
