from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tritonpy_backend_python.in_process.shares import LocalShares


def test_of_many_that_ask_one_builds() -> None:
    shares, built, together = LocalShares(), list[int](), threading.Barrier(4)

    def ask() -> dict[str, np.ndarray]:
        together.wait()
        return shares.get("weights", build)

    def build() -> dict[str, np.ndarray]:
        built.append(1)
        return {"w": np.arange(1000)}

    with ThreadPoolExecutor(4) as pool:
        found = [each.result() for each in [pool.submit(ask) for _ in range(4)]]
    assert built == [1]
    assert all(np.shares_memory(found[0]["w"], each["w"]) for each in found)
    assert not found[0]["w"].flags.writeable


def test_who_changes_the_dictionary_changes_his_own() -> None:
    shares = LocalShares()
    shares.get("k", lambda: {"a": np.ones(1)}).clear()
    assert list(shares.get("k", dict)) == ["a"]


def test_a_build_that_fails_leaves_it_to_the_next() -> None:
    shares = LocalShares()
    with pytest.raises(ZeroDivisionError):
        shares.get("k", lambda: 1 / 0)
    assert shares.get("k", lambda: {"a": np.ones(1)})["a"].tolist() == [1]
