from __future__ import annotations

from importlib.metadata import entry_points
from pkgutil import resolve_name

import tritonpy_batching_sequence as plugin
from tritonpy.scheduling import Scheduler


def test_the_entry_point_names_the_module():
    (found,) = entry_points(group="tritonpy", name="batching-sequence")
    assert found.load() is plugin


def test_the_registered_name_is_a_scheduler():
    assert issubclass(resolve_name(plugin.tritonpy_schedulers()["sequence"]), Scheduler)
