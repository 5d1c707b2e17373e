from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tritonpy_testing import RecordingSink

Failures = Callable[[type], set[str]]


@pytest.fixture
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Failures:
    """Run all tests of a contract and return the names of failing ones, with short timeouts."""
    monkeypatch.setattr(RecordingSink, "wait_s", 0.2)

    def run(contract: type) -> set[str]:
        return {name for name in tests_of(contract) if _fails(contract, name, tmp_path)}

    return run


@pytest.fixture
def tests() -> Callable[[type], set[str]]:
    """Return the names of the tests that pytest would collect from a contract."""
    return tests_of


def tests_of(contract: type) -> set[str]:
    return {
        name
        for name in dir(contract)
        if name.startswith("test_") and getattr(contract, name) is not None
    }


def _fails(contract: type, name: str, tmp_path: Path) -> bool:
    test: Callable[..., Any] = getattr(contract(), name)
    arguments: dict[str, Path] = {}
    if "tmp_path" in inspect.signature(test).parameters:
        arguments["tmp_path"] = tmp_path / contract.__name__ / name
        arguments["tmp_path"].mkdir(parents=True)
    try:
        test(**arguments)
    except Exception:
        return True
    return False
