from __future__ import annotations

import pytest

from tests.conformance.sampling import SEED_VARIABLE, SHARE_VARIABLE, Sampling

NAMES = [f"topic/exchange {number}" for number in range(2000)]


def taken(sampling: Sampling) -> list[str]:
    return [name for name in NAMES if sampling.takes(name)]


def test_without_a_share_every_exchange_runs(monkeypatch):
    monkeypatch.delenv(SHARE_VARIABLE, raising=False)
    assert taken(Sampling.of_environment()) == NAMES


def test_a_share_is_about_kept_and_another_seed_takes_others():
    first, second = taken(Sampling(0.5, 1)), taken(Sampling(0.5, 2))
    assert 800 < len(first) < 1200
    assert first != second
    assert first == taken(Sampling(0.5, 1))


def test_the_selection_of_an_exchange_is_independent_of_the_others():
    assert [name for name in NAMES[::3] if Sampling(0.3, 7).takes(name)] == [
        name for name in taken(Sampling(0.3, 7)) if name in set(NAMES[::3])
    ]


def test_the_printed_variables_repeat_the_run(monkeypatch):
    monkeypatch.setenv(SHARE_VARIABLE, "0.25")
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    sampling = Sampling.of_environment()
    line = sampling.described(len(taken(sampling)), NAMES)
    for setting in line.split()[-2:]:
        monkeypatch.setenv(*setting.split("="))
    assert taken(Sampling.of_environment()) == taken(sampling)


@pytest.mark.parametrize("share", ["-0.1", "1.5", "half"])
def test_an_invalid_share_is_rejected(monkeypatch, share):
    monkeypatch.setenv(SHARE_VARIABLE, share)
    with pytest.raises(ValueError, match=r"share|half"):
        Sampling.of_environment()
