from __future__ import annotations

from importlib.metadata import entry_points
from pkgutil import resolve_name

import tritonpy_batching_dynamic as plugin
from tritonpy.scheduling import BatchPolicy, Scheduler


def test_the_entry_point_names_the_module():
    (found,) = entry_points(group="tritonpy", name="batching-dynamic")
    assert found.load() is plugin


def test_the_registered_names_are_classes_of_their_kind():
    assert issubclass(resolve_name(plugin.tritonpy_schedulers()["dynamic"]), Scheduler)
    assert issubclass(resolve_name(plugin.tritonpy_batch_policies()["preferred"]), BatchPolicy)
