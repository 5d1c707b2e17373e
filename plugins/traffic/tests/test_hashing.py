from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_traffic.hashing import point, ranked

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 100), min_size=1)
KEYS = [f"client {number}" for number in range(2000)]


def test_points_are_those_that_the_documentation_defines() -> None:
    # Computed with another BLAKE2b implementation (b2sum -l 64), so that no change moves keys.
    assert point("route", "digits:2", "alice") == (0x1431399E9955169F >> 11) / 2**53 + 0.5 / 2**53
    assert 0 < point("") < 1
    assert point("a", "b") != point("ab")


def test_keys_are_distributed_by_weight() -> None:
    first = [ranked("route", key, [("a", 1), ("b", 3), ("none", 0)])[0] for key in KEYS]
    assert abs(first.count("b") - 1500) < 80
    assert "none" not in first


@given(WEIGHTS, st.text())
def test_every_target_with_a_weight_is_ranked_once_in_any_order(
    weights: dict[str, float], key: str
) -> None:
    found = ranked("route", key, weights.items())
    assert sorted(found) == sorted(name for name, weight in weights.items() if weight > 0)
    assert found == ranked("route", key, reversed(list(weights.items())))


@given(WEIGHTS, st.sampled_from("abcdef"), st.floats(0, 100))
def test_a_changed_weight_moves_only_keys_of_that_target(
    weights: dict[str, float], changed: str, weight: float
) -> None:
    after = {**weights, changed: weight}
    for key in KEYS[:100]:
        old, new = (ranked("route", key, which.items())[:1] for which in (weights, after))
        assert old == new or changed in old + new
        if old and new and old != new:
            grew = after[changed] > weights.get(changed, 0)
            assert (new if grew else old) == [changed]


def test_without_its_first_target_a_key_goes_to_its_second() -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 3.0}
    for key in KEYS[:200]:
        first, second, _ = ranked("route", key, weights.items())
        left = {name: weight for name, weight in weights.items() if name != first}
        assert ranked("route", key, left.items())[0] == second
