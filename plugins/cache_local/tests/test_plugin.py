from __future__ import annotations

from importlib.metadata import entry_points

import tritonpy_cache_local as plugin


def test_the_entry_point_names_the_module():
    (found,) = entry_points(group="tritonpy", name="cache-local")
    assert found.load() is plugin
