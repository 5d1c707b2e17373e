from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tritonpy_backend_python.in_process.shared_arrays import LocalSharedArrays


def test_one_of_several_callers_builds() -> None:
    shares, built, together = LocalSharedArrays(), list[int](), threading.Barrier(4)

    def query() -> dict[str, np.ndarray]:
        together.wait()
        return shares.get("weights", build)

    def build() -> dict[str, np.ndarray]:
        built.append(1)
        return {"w": np.arange(1000)}

    with ThreadPoolExecutor(4) as pool:
        found = [each.result() for each in [pool.submit(query) for _ in range(4)]]
    assert built == [1]
    assert all(np.shares_memory(found[0]["w"], each["w"]) for each in found)
    assert not found[0]["w"].flags.writeable


def test_each_caller_gets_its_own_dictionary() -> None:
    shares = LocalSharedArrays()
    shares.get("k", lambda: {"a": np.ones(1)}).clear()
    assert list(shares.get("k", dict)) == ["a"]


def test_after_a_failed_build_the_next_caller_builds() -> None:
    shares = LocalSharedArrays()
    with pytest.raises(ZeroDivisionError):
        shares.get("k", lambda: 1 / 0)
    assert shares.get("k", lambda: {"a": np.ones(1)})["a"].tolist() == [1]
