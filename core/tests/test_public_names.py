from __future__ import annotations

import collections
import importlib
import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import tritonpy

HEAVY = (
    "litestar",
    "uvicorn",
    "grpc",
    "onnxruntime",
    "torch",
    "prometheus_client",
    "asgiref",
    "google.protobuf",
)
NAMESPACES = (
    "auth",
    "config",
    "execution",
    "frontend",
    "metrics",
    "plugins",
    "repository",
    "scheduling",
    "tracing",
)
MODULES = [tritonpy, *(importlib.import_module(f"tritonpy.{name}") for name in NAMESPACES)]
MAX_NAMES = (
    45  # in `tritonpy` itself: what authors of backends and users of a server in their process need
)

in_each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)


def test_importing_tritonpy_loads_no_framework_and_no_web_server() -> None:
    script = f"import sys, tritonpy; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@in_each_module
def test_public_names_exist_once(module: ModuleType) -> None:
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_every_name_is_in_one_module() -> None:
    counts = collections.Counter(name for module in MODULES for name in module.__all__)
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_main_module_has_few_names() -> None:
    assert len(tritonpy.__all__) <= MAX_NAMES


def _is_compiled(value: Any) -> bool:
    """Return whether `value` is of a compiled module, which has no docstrings."""
    path = sys.modules[value.__module__].__file__ or ""
    return not path.endswith(".py")


@in_each_module
def test_every_public_class_and_function_is_documented(module: ModuleType) -> None:
    named = {name: getattr(module, name) for name in module.__all__}
    assert [
        name
        for name, value in named.items()
        if (inspect.isclass(value) or inspect.isroutine(value))
        and not value.__doc__
        and not _is_compiled(value)
    ] == []


def test_namespaces_need_no_import_of_their_own() -> None:
    script = "import tritonpy; print(tritonpy.scheduling.Scheduler.__name__, tritonpy.auth.Verb.__name__)"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["Scheduler", "Verb"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Scheduler", "tritonpy.scheduling.Scheduler"),
        ("HeaderForwarding", "tritonpy.auth.HeaderForwarding"),
        ("MetricFamily", "tritonpy.metrics.MetricFamily"),
        ("Repository", "tritonpy.repository.Repository"),
        ("TraceSink", "tritonpy.tracing.TraceSink"),
        ("parameter_int", "tritonpy.config.parameter_int"),
        ("Line", "tritonpy.scheduling.WaitingQueue"),
    ],
)
def test_a_name_of_an_earlier_release_works_and_a_warning_names_its_place(
    old: str, new: str
) -> None:
    module, _, name = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=rf"tritonpy\.{old} is now called {new}"):
        found = getattr(tritonpy, old)
    assert found is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", ["Nothing", "_private", "__wrapped__"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'tritonpy' has no attribute '{name}'"):
        getattr(tritonpy, name)
